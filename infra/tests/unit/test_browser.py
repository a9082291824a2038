"""Where the browser of the tests is found, in which order, and the error when it is not."""

import hashlib
import io
import platform
import tarfile
from collections.abc import Mapping
from pathlib import Path

import brotli
import httpx
import pytest

from fetching import browser
from fetching.errors import Failure
from local_stack.settings import Settings

PROGRAM = b"a program"


@pytest.fixture(autouse=True)
def empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, on a machine that the package is for."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache_dir=tmp_path / "cache", NPM_CONFIG_REGISTRY="http://registry/npm/")


def tar_of(files: Mapping[str, bytes], mode: str = "w:") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def package(**other: bytes) -> bytes:
    files = {
        "chromium.br": brotli.compress(PROGRAM),
        "al2023.tar.br": brotli.compress(tar_of({"lib/libnss3.so": b"a library"})),
        "fonts.tar.br": brotli.compress(tar_of({"fonts/sans.ttf": b"a font"})),
    }
    return tar_of({f"package/bin/{name}": each for name, each in (files | other).items()}, "w:gz")


def serve(content: bytes, monkeypatch: pytest.MonkeyPatch, *, is_pinned: bool = True) -> list[str]:
    """Every download answers with the content. The addresses that were asked for."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(200, content=content)

    monkeypatch.setattr(httpx, "stream", httpx.Client(transport=httpx.MockTransport(answer)).stream)
    if is_pinned:
        monkeypatch.setattr(browser, "SHA256", hashlib.sha256(content).hexdigest())
    return asked


def obtain(settings: Settings) -> browser.Browser:
    return browser.obtain(settings, lambda _: None)


def test_a_given_browser_comes_first_then_an_installed_one(
    settings: Settings, empty_path: Path, tmp_path: Path
) -> None:
    installed = empty_path / "chromium"
    installed.touch(mode=0o755)
    assert obtain(settings).program == installed
    given = settings.model_copy(update={"browser_bin": tmp_path / "mine"})
    assert obtain(given).program == tmp_path / "mine"


def test_where_none_is_installed_it_is_fetched_once_with_all_that_it_needs(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = serve(package(), monkeypatch)

    first, second = obtain(settings), obtain(settings)

    assert asked == ["http://registry/npm/@sparticuz/chromium/-/chromium-147.0.0.tgz"]
    assert first == second
    assert first.program.read_bytes() == PROGRAM
    assert first.program.stat().st_mode & 0o111
    assert (Path(first.variables["LD_LIBRARY_PATH"]) / "libnss3.so").exists()
    assert "fonts" in Path(first.variables["FONTCONFIG_FILE"]).read_text()
    assert (first.program.parent / "fonts" / "sans.ttf").exists()


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


@pytest.mark.parametrize(
    ("content", "is_pinned", "words"),
    [
        (package(), False, "another checksum"),
        (package(**{"chromium.br": cut(brotli.compress(PROGRAM))}), True, "not complete"),
        (package(**{"chromium.br": b"x" * 99}), True, "cannot be unpacked"),
        (tar_of({}, "w:gz"), True, "cannot be unpacked"),
        (b"no archive", True, "cannot be unpacked"),
    ],
    ids=["another package", "a cut program", "no program", "an empty archive", "no archive"],
)
def test_what_is_not_the_pinned_package_is_refused_and_nothing_is_left(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes,
    is_pinned: bool,
    words: str,
) -> None:
    serve(content, monkeypatch, is_pinned=is_pinned)

    with pytest.raises(Failure, match=f"no browser .*{words}.*: install chromium"):
        obtain(settings)

    assert list(settings.cache_dir.iterdir()) == []


def test_for_another_machine_there_is_none_and_one_line_names_the_remedy(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")

    with pytest.raises(Failure, match="no browser to fetch for this machine: install chromium"):
        obtain(settings)
