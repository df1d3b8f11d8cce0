"""S3: whatever a path says and whatever is a symlink, nothing outside of the folder is touched."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from takopi.core.errors import Refused
from takopi.files.shelf import MAX_IN_BYTES, MAX_OUT_BYTES, Shelf, check_size
from tests.files.test_names import HOSTILE

SECRET = b"outside of the folder"
DENY = (".git", "*.key")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def shelf(root: Path, uploads_dir: str = "in/box") -> Shelf:
    return Shelf(root, uploads_dir, DENY)


def read(files: Shelf, path: str) -> tuple[str, bytes]:
    """The name and the content of a file."""
    pieces: list[bytes] = []
    return files.read(path, pieces.append), b"".join(pieces)


def everything(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@given(HOSTILE, st.binary(max_size=64), st.booleans())
@settings(max_examples=300, deadline=None)
def test_s3_any_name_is_saved_below_the_uploads_folder(name: str, data: bytes, force: bool) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        root.mkdir()
        try:
            path = shelf(root).save(name, BytesIO(data), force=force)
        except Refused:
            assert everything(Path(folder)) == {}
            return
        assert everything(Path(folder)) == {f"root/{path}": data}
        assert Path(path).parent == Path("in/box")


PATHS = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(["..", ".", "", "a", "up", "out", "loop", "file", "b.key", ".git", "\0"]),
        max_size=6,
    ).map("/".join),
)


@given(PATHS)
@example("../secret")
@example("up/secret")
@example("a/../../secret")
@example("out")
@settings(max_examples=500, deadline=None)
def test_s3_any_path_reads_a_file_of_the_folder_or_nothing(path: str) -> None:
    with TemporaryDirectory() as folder:
        top = Path(folder)
        (top / "secret").write_bytes(SECRET)
        root = top / "root"
        (root / "a").mkdir(parents=True)
        (root / "a/file").write_bytes(b"inside")
        (root / "up").symlink_to("..")
        (root / "out").symlink_to(top / "secret")
        (root / "loop").symlink_to("loop")
        (root / "b.key").write_bytes(SECRET)
        (root / "file").symlink_to("b.key")
        try:
            _, data = read(shelf(root), path)
        except Refused:
            return
        assert data == b"inside"


@pytest.mark.parametrize("position", ["in", "in/box"])
def test_s3_uploads_folder_with_a_link_in_it_is_refused(root: Path, position: str) -> None:
    outside = root.parent / "outside"
    (outside / "box").mkdir(parents=True)
    (root / position).parent.mkdir(parents=True, exist_ok=True)
    (root / position).symlink_to(outside)
    with pytest.raises(Refused, match="is a link"):
        shelf(root).save("a.txt", BytesIO(b"a"))
    assert everything(outside) == {}


@pytest.mark.parametrize("force", [False, True])
def test_s3_link_in_the_place_of_a_file_is_never_written_through(root: Path, force: bool) -> None:
    box = root / "in/box"
    box.mkdir(parents=True)
    (box / "a.txt").symlink_to(root.parent / "secret")
    if force:
        with pytest.raises(Refused, match="not a plain file"):
            shelf(root).save("a.txt", BytesIO(b"a"), force=True)
    else:
        assert shelf(root).save("a.txt", BytesIO(b"a")) == "in/box/a-2.txt"
    assert (root.parent / "secret").read_bytes() == SECRET
    assert (box / "a.txt").is_symlink()


def test_s3_folder_that_becomes_a_link_while_it_is_read_shows_nothing_of_the_outside(
    root: Path,
) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(SECRET)
    (root / "real").mkdir()
    (root / "real/file").write_bytes(b"inside")
    (root / "link").symlink_to(outside)
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            (root / "real").rename(root / "aside")
            (root / "link").rename(root / "real")
            (root / "real").rename(root / "link")
            (root / "aside").rename(root / "real")

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(2000):
            try:
                assert read(shelf(root), "real/file")[1] == b"inside"
            except Refused:
                continue
    finally:
        over.set()
        swapping.join()


def test_taken_name_gets_a_number_and_the_same_content_none(root: Path) -> None:
    files = shelf(root)
    saved = [files.save("a.txt", BytesIO(data)) for data in (b"1", b"2", b"1", b"2", b"3")]
    assert [Path(path).name for path in saved] == [
        "a.txt",
        "a-2.txt",
        "a.txt",
        "a-2.txt",
        "a-3.txt",
    ]
    assert len(everything(root)) == 3


def test_force_replaces_a_file_whole(root: Path) -> None:
    files = shelf(root)
    files.save("a.txt", BytesIO(b"1"))
    assert files.save("a.txt", BytesIO(b"2"), force=True) == "in/box/a.txt"
    assert everything(root) == {"in/box/a.txt": b"2"}


def test_folder_in_the_place_of_a_file_is_not_replaced(root: Path) -> None:
    (root / "in/box/a.txt").mkdir(parents=True)
    with pytest.raises(Refused, match="is a folder"):
        shelf(root).save("a.txt", BytesIO(b"1"), force=True)


FULL_DISK = """
import resource, signal, sys
from io import BytesIO
from pathlib import Path
from takopi.core.errors import Refused
from takopi.files.shelf import Shelf
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
try:
    Shelf(Path(sys.argv[1]), "in/box", ()).save("a.txt", BytesIO(bytes(100)))
except Refused as error:
    print(error.what)
"""


def test_disk_that_takes_only_a_part_of_a_file_keeps_nothing_of_it(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, root], check=True, capture_output=True, text=True
    )
    assert done.stdout == "a.txt: File too large\n"
    assert list((root / "in/box").iterdir()) == []


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("box", "is a folder"),
        (".", "is a folder"),
        ("pipe", "not a plain file"),
        ("nothing", "there is no file"),
        ("box/a/b", "link, or not a folder"),
        ("a.key", "files.deny"),
        ("link.txt", "files.deny"),
        ("to.key", "files.deny"),
        ("empty", "is empty"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(root: Path, path: str, told: str) -> None:
    (root / "box").mkdir()
    (root / "box/a").write_bytes(b"a")
    os.mkfifo(root / "pipe")
    (root / "a.key").write_bytes(b"key")
    (root / "link.txt").symlink_to("a.key")
    (root / "to.key").symlink_to("box/a")
    (root / "empty").touch()
    with pytest.raises(Refused, match=told):
        read(shelf(root), path)


def test_whole_path_and_link_that_stay_inside_can_be_read(root: Path) -> None:
    (root / "box").mkdir()
    (root / "box/a").write_bytes(b"a")
    (root / "link").symlink_to("box")
    assert read(shelf(root), str(root / "box/a")) == ("a", b"a")
    assert read(shelf(root), "link/a") == ("a", b"a")


def test_file_over_50_mb_is_not_read(root: Path) -> None:
    with (root / "big").open("wb") as file:
        file.truncate(MAX_OUT_BYTES + 1)
    with pytest.raises(Refused, match="over 50 MB"):
        read(shelf(root), "big")


def test_file_over_20_mb_is_not_saved(root: Path) -> None:
    with pytest.raises(Refused, match="over 20 MB"):
        shelf(root).save("big", BytesIO(bytes(MAX_IN_BYTES + 1)))
    with pytest.raises(Refused, match="over 20 MB"):
        check_size("big", MAX_IN_BYTES + 1)
    check_size("fits", MAX_IN_BYTES)
    assert everything(root) == {}


def test_denied_name_is_not_saved(root: Path) -> None:
    with pytest.raises(Refused, match=r"files\.deny"):
        shelf(root).save("server.key", BytesIO(b"a"))
    assert everything(root) == {}


def with_private(root: Path, *private: Path) -> Shelf:
    return Shelf(root, "in/box", DENY, private=private)


@pytest.mark.parametrize(
    "path",
    ["own/state.db", "own/deep/x", "link", "folder/state.db", "token", "hard", "own", "toml"],
)
def test_private_files_are_not_read_by_any_name(root: Path, path: str) -> None:
    own, token = root / "own", root / "token"
    (own / "deep").mkdir(parents=True)
    for file in (own / "state.db", own / "deep/x", token, root / "toml"):
        file.write_bytes(SECRET)
    (own / "takopi.toml").symlink_to(root / "toml")
    (root / "link").symlink_to(own / "state.db")
    (root / "folder").symlink_to(own)
    (root / "hard").hardlink_to(token)
    with pytest.raises(Refused):
        read(with_private(root, own, own / "takopi.toml", token, root / "gone"), path)


def test_folder_that_is_private_itself_is_not_read(root: Path) -> None:
    (root / "state.db").write_bytes(SECRET)
    with pytest.raises(Refused, match="takopi's own"):
        read(with_private(root, root), "state.db")


def test_folder_beside_a_private_one_is_read(root: Path) -> None:
    (root / "own").mkdir()
    (root / "owned").write_bytes(b"a")
    assert read(with_private(root, root / "own"), "owned") == ("owned", b"a")


@pytest.mark.parametrize("private", ["in", "in/box", "."])
def test_nothing_is_saved_in_a_private_folder(root: Path, private: str) -> None:
    (root / "in/box").mkdir(parents=True)
    with pytest.raises(Refused, match="takopi's own"):
        with_private(root, root / private).save("a.txt", BytesIO(b"a"))
    assert everything(root) == {}


def test_private_file_is_not_replaced(root: Path) -> None:
    token = root / "in/box/token"
    token.parent.mkdir(parents=True)
    token.write_bytes(SECRET)
    with pytest.raises(Refused, match="takopi's own"):
        with_private(root, token).save("token", BytesIO(b"a"), force=True)
    assert everything(root) == {"in/box/token": SECRET}


def test_force_does_not_replace_what_is_to_be_kept(root: Path) -> None:
    files = shelf(root)
    files.save("a.txt", BytesIO(b"old"))
    saved: list[str] = []
    for name, data in (("a.txt", b"1"), ("A.txt", b"2"), ("a.txt", b"3"), ("a-2.txt", b"4")):
        saved.append(files.save(name, BytesIO(data), force=True, keep=saved))
    assert len(set(saved)) == 4
    assert [(root / path).read_bytes() for path in saved] == [b"1", b"2", b"3", b"4"]


def test_folder_that_is_gone_is_told_of(root: Path) -> None:
    root.rmdir()
    with pytest.raises(Refused, match="the folder that is worked in") as got:
        read(shelf(root), "a.txt")
    with pytest.raises(Refused, match="the folder that is worked in"):
        shelf(root).save("a.txt", BytesIO(b"a"))
    assert got.value.way_out
