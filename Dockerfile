# SPDX-License-Identifier: MIT
# One image for the daemon beside a lead and for the `burst` command:
#
#   docker build -t flux-burst-orchestrator:0.1.0 .
#
# It has no Flux: the daemon takes the one that its pod shares (/mnt/flux/view) or that
# is on PATH. Flux's bindings are for one minor version of Python, and 3.11 is that of
# the Flux Operator's views; Debian 13's C library is new enough for those of Ubuntu 24.
ARG PYTHON=python:3.11-slim-trixie@sha256:9534e5a8e315485d4061ed659af0fd78a284c015f9b73661b41d6bab25604534

FROM ${PYTHON} AS build
# Each of the project's extras but dev.
ARG EXTRAS=flux,gke,kube
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY burst ./burst
COPY plugins ./plugins
# kubernetes/aio is the client's asynchronous half, 68 MB that nothing imports.
RUN python -m venv --without-pip /opt/burst \
    && python -m pip --python /opt/burst/bin/python install --no-cache-dir \
        --disable-pip-version-check --constraint constraints.txt ".[${EXTRAS}]" \
    && rm -rf /opt/burst/lib/python3*/site-packages/kubernetes/aio

FROM ${PYTHON}
# A broker's owner is who starts it, and only the owner may serve it: the lead's user is
# 1000 in manifests/ too.
RUN groupadd --gid 1000 burst \
    && useradd --uid 1000 --gid 1000 --no-log-init --create-home burst
COPY --from=build /opt/burst /opt/burst
ENV PATH=/opt/burst/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1
USER 1000:1000
WORKDIR /home/burst
ENTRYPOINT ["burst"]
CMD ["daemon"]
