"""What the files of large output take of the disk, and for how long."""

from __future__ import annotations

import os
import resource
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from shellkit.errors import ExecutorClosed, UnknownOutput
from shellkit.output.buffer import HeadTailBuffer
from shellkit.sessions.spill import SpillFile, SpillStore
from shellkit.sessions.spill.page import PageRequest, read_page
from shellkit.sessions.spill.store import LEAST_LIMIT

MIB = 1 << 20


def taken(directory: Path) -> int:
    """Return the bytes of all pieces in `directory`."""
    return sum(p.stat().st_size for p in directory.rglob("*") if p.is_file() and p.name != ".lock")


def everything(store: SpillStore, file: SpillFile) -> bytes:
    """Return what can be read of a file, page by page."""
    data, at = b"", 0
    while True:
        page = read_page(store, file.ref, PageRequest(offset=at, limit=100_000))
        data += page.text.encode()
        if page.next_offset in (None, at):
            return data
        at = page.next_offset


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SpillStore]:
    """A store with the least limit."""
    made = SpillStore(str(tmp_path / "spill"), LEAST_LIMIT, None)
    yield made
    made.close()


def test_nothing_is_written_while_the_buffer_keeps_everything(store: SpillStore, tmp_path: Path) -> None:
    """E5: the file begins when the limit is passed, and then with the stream's first byte."""
    buffer, file = HeadTailBuffer(10), store.file()
    for chunk in (b"01234", b"56789"):
        file.follow(buffer, memoryview(chunk))
        buffer.append(chunk)
    assert (file.ref, os.listdir(tmp_path)) == (None, [])
    for chunk in (b"abc", b"def"):
        file.follow(buffer, memoryview(chunk))
        buffer.append(chunk)
    assert everything(store, file) == b"0123456789abcdef"
    file.close()


def test_only_this_user_may_read(store: SpillStore, tmp_path: Path) -> None:
    """E5: directories are 0700 and files 0600, whatever the umask."""
    before = os.umask(0)
    try:
        file = store.file()
        file.write(b"secret")
        file.close()
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.rglob("*") if p.is_dir()}
    assert modes == {0o700}
    assert {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.rglob("*") if p.is_file()} == {0o600}


@pytest.mark.parametrize("size", [1000, 32 * 1024, 65536, 100_001])
def test_a_large_stream_keeps_head_and_newest_part_and_samples(store: SpillStore, tmp_path: Path, size: int) -> None:
    """E5: a stream stays within half of the limit; what is left out is named, and lines keep their numbers.

    What is left of the middle is spread over it.
    """
    data = b"".join(b"%07d\n" % n for n in range(MIB // 2))
    file = store.file()
    for at in range(0, len(data), size):
        file.write(data[at : at + size])
        assert file.size <= LEAST_LIMIT // 2
    file.close()
    assert taken(tmp_path) <= file.size <= LEAST_LIMIT // 2
    page = read_page(store, file.ref, PageRequest())
    assert page.total == len(data)
    piece = store.piece_bytes
    assert page.missing[0][0] >= 6 * piece
    assert len(data) - page.missing[-1][1] > 5 * piece
    sizes = [end - begin for begin, end in page.missing]
    assert 3 <= len(sizes) <= 5
    assert max(sizes) <= 4 * min(sizes)
    borders = [0, *(border for gap in page.missing for border in gap), len(data)]
    assert everything(store, file) == b"".join(data[a:b] for a, b in zip(borders[::2], borders[1::2], strict=True))
    begin, end = page.missing[-1]
    gap = read_page(store, file.ref, PageRequest(offset=(begin + end) // 2))
    assert (gap.offset, gap.first_line) == (end, end // 8 + 1)
    assert gap.text.startswith(f"{end // 8:07}\n")
    numbered = read_page(store, file.ref, PageRequest(lines=(end // 8 + 10, end // 8 + 10)))
    assert numbered.text == f"{end // 8 + 9:07}\n"


def test_the_oldest_makes_room(store: SpillStore, tmp_path: Path) -> None:
    """E5: over the limit the oldest output is removed first, one that is still being written too."""
    files = [store.file() for _ in range(6)]
    for file in files:
        file.write(b"x" * (LEAST_LIMIT // 4 - 16 * 1024))
    assert taken(tmp_path) <= LEAST_LIMIT
    assert [file.removed for file in files] == [True, True, False, False, False, False]
    files[0].write(b"more")  # goes nowhere, and hurts nobody
    with pytest.raises(UnknownOutput, match=str(files[5].ref)):
        read_page(store, files[0].ref, PageRequest())
    assert read_page(store, files[2].ref, PageRequest()).text.startswith("x")
    for file in files:
        file.close()


def test_small_files_count_too(store: SpillStore, tmp_path: Path) -> None:
    """E5: the limit holds for what thousands of tiny files take of the disk, and there are never too many."""
    for _ in range(500):
        file = store.file()
        file.write(b"x")
        file.close()
    [folder] = (tmp_path / "spill").iterdir()
    kept = [p for p in folder.iterdir() if p.is_dir()]
    assert 100 < len(kept) <= LEAST_LIMIT // 8192
    assert sum(p.stat().st_blocks * 512 for p in folder.rglob("*")) <= LEAST_LIMIT


def test_a_full_disk_is_told(store: SpillStore) -> None:
    """E5: what cannot be written is named in `failure`; writing never raises, and what was written can be read."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    file = store.file()
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        file.write(b"a" * 15_000)
        file.write(b"b" * 15_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert file.failure is not None
    assert "10000 bytes" in file.failure
    page = read_page(store, file.ref, PageRequest())
    assert (page.text, page.notes) == ("a" * 10_000, (file.failure,))


def test_a_disk_without_any_room(store: SpillStore) -> None:
    """E5: where nothing could be written there is no reference, which would promise something."""
    first = store.file()
    first.write(b"makes the folder")
    first.close()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    file = store.file()
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        file.write(b"a")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (file.ref, "first 0 bytes" in (file.failure or "")) == (None, True)


def test_a_directory_that_somebody_removed(store: SpillStore, tmp_path: Path) -> None:
    """E5: of an output whose files are gone that is said, and that new output has no place."""
    file = store.file()
    file.write(b"a")
    file.close()
    shutil.rmtree(tmp_path / "spill")
    with pytest.raises(UnknownOutput, match="or its files were removed"):
        read_page(store, file.ref, PageRequest())
    later = store.file()
    later.write(b"b")
    assert later.ref is None
    assert "see that spill_dir is there and has room" in (later.failure or "")


def test_no_directory_to_be_had(tmp_path: Path) -> None:
    """E5: a directory that cannot be made is a failure of the file, not of whoever writes it."""
    (tmp_path / "file").touch()
    store = SpillStore(str(tmp_path / "file" / "below"), LEAST_LIMIT, None)
    file = store.file()
    file.write(b"data")
    assert (file.ref, "0 bytes" in (file.failure or "")) == (None, True)
    store.close()


def test_closing_removes_everything(tmp_path: Path) -> None:
    """E5, G3: without a retention nothing is left; what still writes goes nowhere."""
    store = SpillStore(str(tmp_path / "spill"), LEAST_LIMIT, None)
    file = store.file()
    file.write(b"data")
    store.close()
    store.close()
    file.write(b"more")
    late = store.file()
    late.write(b"late")
    file.close()
    assert os.listdir(tmp_path / "spill") == []
    with pytest.raises(ExecutorClosed):
        read_page(store, file.ref, PageRequest())


def test_retention(tmp_path: Path) -> None:
    """E5: files that are to stay can be read by a later executor of the same directory, until their time is over."""
    first = SpillStore(str(tmp_path), LEAST_LIMIT, 1000.0)
    file = first.file()
    file.write(b"kept")
    file.close()
    second = SpillStore(str(tmp_path), LEAST_LIMIT, None)
    for _ in ("the first lives", "the first is closed"):
        other = second.file()
        other.write(b"other")
        other.close()
        assert read_page(second, file.ref, PageRequest()).text == "kept"
        first.close()
    second.close()
    [lock] = tmp_path.glob("*/.lock")
    past = lock.stat().st_mtime - 1001
    os.utime(lock, (past, past))
    third = SpillStore(str(tmp_path), LEAST_LIMIT, None)
    other = third.file()
    other.write(b"other")
    other.close()
    with pytest.raises(UnknownOutput):
        read_page(third, file.ref, PageRequest())
    third.close()
    assert os.listdir(tmp_path) == []


def test_a_killed_host(tmp_path: Path) -> None:
    """E5: what a killed host left is removed by the next executor that keeps output in the directory."""
    script = (
        "import os, signal, sys; from shellkit.sessions.spill import SpillStore\n"
        "store = SpillStore(sys.argv[1], 1 << 20, None); store.file().write(b'left'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert len(os.listdir(tmp_path)) == 1
    store = SpillStore(str(tmp_path), LEAST_LIMIT, None)
    file = store.file()
    file.write(b"new")
    file.close()
    assert len(os.listdir(tmp_path)) == 1
    store.close()
    assert os.listdir(tmp_path) == []


def test_folders_that_others_planted(tmp_path: Path) -> None:
    """E5: in a directory for everybody, what only looks like an executor's folder is neither read nor removed."""
    (tmp_path / "elsewhere" / ("0" * 16)).mkdir(parents=True)
    (tmp_path / "elsewhere" / ("0" * 16) / "0-0").write_text("not for models")
    spill = tmp_path / "spill"
    spill.mkdir()
    (spill / "shellkit-planted").symlink_to(tmp_path / "elsewhere")
    (spill / "shellkit-file").touch()
    store = SpillStore(str(spill), LEAST_LIMIT, None)
    file = store.file()
    file.write(b"mine")
    file.close()
    with pytest.raises(UnknownOutput):
        read_page(store, "0" * 16, PageRequest())
    store.close()
    assert (tmp_path / "elsewhere" / ("0" * 16) / "0-0").read_text() == "not for models"
    assert sorted(os.listdir(spill)) == ["shellkit-file", "shellkit-planted"]


def test_closing_in_the_middle_of_a_write(store: SpillStore) -> None:
    """E5, G3: whoever closes a file, and when, no byte goes to a descriptor that belongs to somebody else by then."""
    chunk = b"x" * 65536
    for _ in range(20):
        file = store.file()
        writers = [threading.Thread(target=lambda file=file: [file.write(chunk) for _ in range(20)]) for _ in range(2)]
        for writer in writers:
            writer.start()
        file.close()
        for writer in writers:
            writer.join()
        assert file.failure is None
        file.write(b"late")
        assert file._fd == -1


@pytest.mark.parametrize("ref", ["", "..", "../..", "0123456789abcdef", "/etc/passwd", "a" * 10_000])
def test_a_reference_is_no_path(store: SpillStore, ref: str) -> None:
    """E5: a model never names a path; what is no reference of ours is unknown, and the error names what is kept."""
    file = store.file()
    file.write(b"data")
    file.close()
    with pytest.raises(UnknownOutput, match=str(file.ref)):
        store.find(ref)
    with pytest.raises(TypeError, match="ref"):
        store.find(7)
