# SPDX-License-Identifier: MIT
# One image for the daemon beside a lead and for the `burst` command:
#
#   docker build -t flux-burst-orchestrator:0.1.0 .
#
# It contains no Flux: the daemon uses the Flux on PATH, or in /mnt/flux/view, a volume of
# its pod. Flux's bindings are built for one minor version of Python, which is 3.11 in the
# Flux Operator's views. The views for Ubuntu 24 run with the C library of Debian 13.
ARG PYTHON=python:3.11-slim-trixie@sha256:9534e5a8e315485d4061ed659af0fd78a284c015f9b73661b41d6bab25604534

FROM ${PYTHON} AS build
# Each of the project's extras but dev, and plot, which `burst replay --picture` needs and
# a daemon does not.
ARG EXTRAS=ensemble,flux,gke,kube,report,vm,watch
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY burst ./burst
COPY plugins ./plugins
COPY man ./man
# kubernetes/aio is the asynchronous client: 68 MB, and nothing here imports it.
RUN python -m venv --without-pip /opt/burst \
    && python -m pip --python /opt/burst/bin/python install --no-cache-dir \
        --disable-pip-version-check --constraint constraints.txt ".[${EXTRAS}]" \
    && rm -rf /opt/burst/lib/python3*/site-packages/kubernetes/aio

FROM ${PYTHON}
# Only the user who started the lead's broker may run the daemon. In manifests/ that user
# is 1000.
RUN groupadd --gid 1000 burst \
    && useradd --uid 1000 --gid 1000 --no-log-init --create-home burst
COPY --from=build /opt/burst /opt/burst
ENV PATH=/opt/burst/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1
USER 1000:1000
WORKDIR /home/burst
ENTRYPOINT ["burst"]
CMD ["daemon"]
