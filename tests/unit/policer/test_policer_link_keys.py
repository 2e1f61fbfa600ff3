"""The policer's key file: what is read, and what is refused by name."""

from pathlib import Path

import pytest
import zmq.auth

from policer.errors import SettingsError
from policer.link import load_keys


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    _, path = zmq.auth.create_certificates(tmp_path, "policer")
    Path(path).chmod(0o600)
    return Path(path)


def test_a_pair_is_read_as_it_was_made(secret: Path) -> None:
    keys = load_keys(secret)
    assert (keys.public, keys.secret) == zmq.auth.load_certificate(secret)
    assert keys.secret.decode() not in repr(keys)


def refused(path: Path, words: str | None = None) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        load_keys(path)
    assert caught.value.where == "link.secret_key_file"
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    refused(tmp_path / "none", "No such file")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620])
def test_a_file_that_others_can_read_or_write(secret: Path, mode: int) -> None:
    secret.chmod(mode)
    refused(secret, "chmod 600")


def test_a_public_key_file(secret: Path) -> None:
    public = secret.with_suffix(".key")
    public.chmod(0o600)
    refused(public, "no secret key")


@pytest.mark.parametrize(
    "content", [b"", b"no keys", b"\xff\xfe\x00", b'curve\n  public-key = "a"']
)
def test_a_file_without_keys(secret: Path, content: bytes) -> None:
    secret.write_bytes(content)
    refused(secret)


def test_two_keys_that_are_no_pair(tmp_path: Path, secret: Path) -> None:
    (tmp_path / "other").mkdir()
    zmq.auth.create_certificates(tmp_path / "other", "other")
    other, _ = zmq.auth.load_certificate(tmp_path / "other" / "other.key")
    own, _ = zmq.auth.load_certificate(secret)
    secret.write_bytes(secret.read_bytes().replace(own, other))
    refused(secret, "do not match")


def test_a_secret_that_is_no_key(secret: Path) -> None:
    _, own = zmq.auth.load_certificate(secret)
    assert own is not None
    secret.write_bytes(secret.read_bytes().replace(own, b"short"))
    refused(secret, "do not match")
