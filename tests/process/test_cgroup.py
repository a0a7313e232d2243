"""Cgroups as several threads see them."""

from __future__ import annotations

import os
import threading
import uuid

import pytest

from shellkit.process.cgroup import Cgroup, own_cgroup


def test_it_may_be_looked_at_while_it_is_removed() -> None:
    """G3: the thread that drains removes a job's group while another asks who is in it; the answer is then: nobody."""
    directory = own_cgroup()
    if directory is None:
        pytest.skip("no cgroup can be made here")
    failures: list[BaseException] = []

    def look(group: Cgroup) -> None:
        try:
            while not group.removed:
                assert group.pids() == []
            assert group.pids() == []
        except BaseException as error:
            failures.append(error)

    for _ in range(50):
        group = Cgroup(f"{directory}/shellkit-test-{uuid.uuid4().hex}")
        looking = [threading.Thread(target=look, args=(group,)) for _ in range(3)]
        for thread in looking:
            thread.start()
        group.remove()
        for thread in looking:
            thread.join()
        assert not os.path.exists(group.path)
    assert failures == []
