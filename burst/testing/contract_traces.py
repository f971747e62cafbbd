# SPDX-License-Identifier: MIT
"""The part of the provider contract about what a burst shows and what it leaves."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import msgspec
import pytest

from burst.errors import ProviderError
from burst.kits import certificate
from burst.provider import BurstSpec, OwnedBurst, Phase
from burst.testing.backend import Backend
from burst.testing.fixtures import Begin, ContractFixtures, MakeSpec
from burst.testing.trial import Trial

_LARGEST = 1 << 20


class TraceChecks(ContractFixtures):
    """Checks what followers are given, what others can read, and what is left."""

    def test_no_secret_is_in_what_others_can_read(
        self, trial: Trial, spec: BurstSpec, backend: Backend
    ) -> None:
        trial.provision(spec)
        trial.wait_running(spec)
        text = backend.public(spec)
        assert text, "`public` returns nothing of a burst that runs"
        trial.check_secrets(text)

    def test_followers_are_given_the_leads_endpoint(
        self, trial: Trial, spec: BurstSpec, backend: Backend
    ) -> None:
        trial.provision(spec)
        trial.wait_running(spec)
        assert spec.lead.endpoint in backend.given(spec)

    def test_no_variable_of_the_daemon_reaches_followers(
        self,
        trial: Trial,
        spec: BurstSpec,
        backend: Backend,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("BURST_CONTRACT_SECRET", "secret of the daemon")
        trial.provision(spec)
        trial.wait_running(spec)
        lines = backend.environment(spec).splitlines()
        names = {line.partition("=")[0] for line in lines}
        assert "PATH" in names, "a follower needs it"
        assert not names & {"FLUX_URI", "BURST_CONTRACT_SECRET"}
        trial.check_secrets("\n".join(lines))

    def test_its_followers_join_the_lead_and_leave_it(
        self, trial: Trial, spec: BurstSpec, backend: Backend
    ) -> None:
        ranks = set(spec.ranks)
        # A lead that tests share may see the end of an earlier burst a moment late.
        trial.wait(lambda: not ranks & backend.online(spec), "others to be offline")
        trial.provision(spec)
        trial.wait(lambda: ranks <= backend.online(spec), "all ranks to be online")
        trial.reap_all(spec.burst_id)
        trial.wait(lambda: not ranks & backend.online(spec), "all to be offline")

    def test_once_reaped_no_file_and_no_object_of_it_is_left(
        self, trial: Trial, spec: BurstSpec, backend: Backend
    ) -> None:
        trial.provision(spec)
        trial.wait_running(spec)
        trial.reap_all(spec.burst_id)
        assert list(backend.left(spec)) == []

    def test_once_reaped_no_temporary_file_tells_of_it(
        self,
        spec: BurstSpec,
        begin: Begin,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        monkeypatch.setenv("TMPDIR", str(temporary))
        monkeypatch.setattr(tempfile, "tempdir", None)
        trial = begin(spec.owner)
        trial.provision(spec)
        trial.wait_running(spec)
        trial.reap_all(spec.burst_id)
        secret = certificate.read(Path(spec.lead.certificate)).secret
        telling = [
            path
            for path in _files(temporary)
            if spec.burst_id in str(path) or secret in _start_of(path)
        ]
        assert telling == []

    def test_another_providers_burst_of_the_same_owner_is_neither_seen_nor_touched(
        self, spec: BurstSpec, begin: Begin, backend: Backend, make_spec: MakeSpec
    ) -> None:
        """Two `[providers.NAME]` tables may have the same type and the same place."""
        first = begin(spec.owner, lambda owner: backend.named(owner, "first"))
        second = begin(spec.owner, lambda owner: backend.named(owner, "first-b"))
        check_apart({first: spec, second: make_spec(spec.owner, 1)})

    def test_the_bursts_of_all_owners_are_listed_with_their_tags(
        self, spec: BurstSpec, begin: Begin
    ) -> None:
        """By these tags, bursts of a lost lead are found and deleted without it."""
        stranger = begin(f"{spec.owner}-b")
        survey = stranger.provider
        if not survey.has("list_all"):
            pytest.skip("not tried: bursts of all owners (it has no list_all)")
        spec = msgspec.structs.replace(spec, lease_end=float(int(time.time()) + 3600))
        begin(spec.owner).provision(spec)

        def listed() -> list[OwnedBurst]:
            return [b for b in survey.list_all() if b.burst_id == spec.burst_id]

        stranger.wait(lambda: bool(listed()), "it to be listed", self.patience)
        (found,) = listed()
        assert found.owner == spec.owner
        assert found.lease_end, "its tags do not tell when its lease ends"
        begin(found.owner).reap_all(found.burst_id)
        stranger.wait(lambda: not listed(), "it to be gone", self.patience)

    def test_the_bursts_of_all_providers_are_listed_with_their_names(
        self, spec: BurstSpec, begin: Begin, backend: Backend
    ) -> None:
        """Only a provider of this name finds and deletes them."""
        first = begin(spec.owner, lambda owner: backend.named(owner, "first"))
        second = begin(spec.owner, lambda owner: backend.named(owner, "first-b"))
        survey = second.provider
        if not survey.has("list_all"):
            pytest.skip("not tried: bursts of all providers (it has no list_all)")
        first.provision(spec)

        def names() -> set[str]:
            found = survey.list_all()
            return {b.provider for b in found if b.burst_id == spec.burst_id}

        second.wait(lambda: bool(names()), "it to be listed")
        assert names() == {"first"}

    def test_at_the_end_of_its_lease_it_ends_by_itself(
        self, trial: Trial, spec: BurstSpec, begin: Begin
    ) -> None:
        """While it ends, no provider is called if followers can be counted without."""
        if not self.ends_leases:
            pytest.skip("not tried: the end of a lease (set ends_leases = True)")
        spec = self._begin_leased(trial, spec)

        def ended() -> bool:
            counted = trial.count(spec)
            return not (_runs(trial, spec) if counted is None else counted)

        left = spec.lease_end - time.time()
        trial.wait(ended, "its followers to end", left + self.patience)
        assert time.time() >= spec.lease_end, "it ended before its lease did"
        later = begin(spec.owner)
        later.wait(
            lambda: not _runs(later, spec), "no follower to be listed as running"
        )

    def _begin_leased(self, trial: Trial, spec: BurstSpec) -> BurstSpec:
        """Return the spec of a burst that runs, with a lease that ends soon.

        If a lease ends before its burst is seen to run, as on a busy machine, try again
        with one that is four times as long.
        """
        lease = self.lease
        while True:
            leased = msgspec.structs.replace(spec, lease_end=time.time() + lease)
            try:
                trial.provision(leased)
                trial.wait_running(leased, within=lease)
            except (AssertionError, ProviderError, pytest.fail.Exception):
                if time.time() < leased.lease_end or lease > self.patience:
                    raise
            else:
                return leased
            trial.reap_all(spec.burst_id)
            lease *= 4


def check_apart(bursts: dict[Trial, BurstSpec]) -> None:
    """Make the burst of each trial; each must see and delete that burst alone."""
    for trial, spec in bursts.items():
        trial.provision(spec)
    for trial, spec in bursts.items():
        trial.wait_running(spec)
        assert set(trial.observe()) == {spec.burst_id}
        for other in bursts.values():
            if other != spec:
                assert trial.reap(other.burst_id), "to others it is NotFound"
    for trial, spec in bursts.items():
        trial.wait_running(spec)


def _runs(trial: Trial, spec: BurstSpec) -> bool:
    """Return whether any follower of the burst is listed as running."""
    status = trial.observe().get(spec.burst_id)
    followers = status.followers if status else ()
    return any(follower.phase is Phase.RUNNING for follower in followers)


def _files(directory: Path) -> list[Path]:
    return [Path(p, name) for p, _, names in os.walk(directory) for name in names]


def _start_of(path: Path) -> bytes:
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(_LARGEST)
