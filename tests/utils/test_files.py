"""Atomic replacement of regular files, and removal of leftovers of killed writers."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dpplearn import InputError
from dpplearn.utils import files
from dpplearn.utils.files import check_writable, replace_file

LOCKS = pytest.mark.skipif(files.fcntl is None, reason="this system has no flock")


def test_pipes_and_links_that_lead_nowhere_are_rejected_and_stay(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "astray").symlink_to(tmp_path / "none" / "file")
    for name in ("pipe", "link", "circle", "astray"):
        with pytest.raises(InputError, match=name):
            replace_file(tmp_path / name, b"new")
        with pytest.raises(InputError, match=name):
            check_writable(tmp_path / name)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert (tmp_path / "link").is_symlink()
    assert len(list(tmp_path.iterdir())) == 4


def test_a_link_stays_and_the_file_behind_it_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file, link, to_nothing = tmp_path / "folder" / "file", tmp_path / "link", tmp_path / "to nothing"
    file.write_bytes(b"old")
    link.symlink_to(file)
    to_nothing.symlink_to(tmp_path / "folder" / "later")
    for path in (link, to_nothing):
        check_writable(path)
        replace_file(path, b"new")
        assert path.is_symlink()
    assert file.read_bytes() == b"new"
    assert (tmp_path / "folder" / "later").read_bytes() == b"new"


WRITER = """
import sys
from pathlib import Path
from dpplearn.utils.files import new_file
with new_file(Path(sys.argv[1])) as file:
    file.write_bytes(b"half")
    print("writing", flush=True)
    sys.stdin.read()
"""


@LOCKS
@pytest.mark.slow
def test_the_leftover_of_a_killed_writer_is_removed_and_the_file_of_a_running_one_is_not(tmp_path: Path) -> None:
    call = [sys.executable, "-c", WRITER, str(tmp_path / "model")]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        replace_file(tmp_path / "model", b"ours")
        left = [path for path in tmp_path.iterdir() if path.name != "model"]
        assert [path.read_bytes() for path in left] == [b"half"]
        writer.kill()
    assert left[0].exists()
    replace_file(tmp_path / "another", b"ours")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["another", "model"]
    assert (tmp_path / "model").read_bytes() == b"ours"


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    names = [".dpplearn-notes.tmp", ".model.k2j4h5g6", "model.tmp", f".dpplearn-{'0' * 16}.tmp.csv"]
    for name in names:
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / f".dpplearn-{'1' * 16}.tmp").mkdir()  # no writer creates a folder
    replace_file(tmp_path / "model", b"x")
    assert len(list(tmp_path.iterdir())) == len(names) + 2


def test_without_locks_files_are_written_and_none_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    left = tmp_path / f".dpplearn-{'0' * 16}.tmp"
    left.write_bytes(b"half")
    if files.fcntl is not None:
        monkeypatch.setattr(files.fcntl, "flock", fail)
    replace_file(tmp_path / "model", b"x")
    assert sorted(tmp_path.iterdir()) == sorted([left, tmp_path / "model"])
