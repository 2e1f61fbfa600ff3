"""Tokens of an issuer: what is verified, and every way to get past that."""

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from oidc_rig import AUDIENCE, ec, published, rsa, signed

from policer.contracts.reach import UNLIMITED, Reach
from policer.errors import Unauthenticated
from policer.oidc.grants import Grant, granted, name_of, subject_of, values_of
from policer.oidc.verify import NamedKey, UnknownKey, Verifier, usable_keys

NOW = 1_800_000_000
ISSUER = "https://id.example/realms/fleet"
CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "sub": "7b1e", "exp": NOW + 60}
VERIFIER = Verifier(ISSUER, AUDIENCE, ("RS256", "ES256", "Ed25519"), leeway_s=30)
KEY = rsa("first")
KEYS = usable_keys(published(KEY))


def check(token: str, keys: tuple[NamedKey, ...] = KEYS, now: float = NOW) -> dict[str, Any]:
    return VERIFIER.claims(token, keys, now)


def refused(token: str, words: str, keys: tuple[NamedKey, ...] = KEYS) -> None:
    with pytest.raises(Unauthenticated, match=words) as error:
        check(token, keys)
    assert token not in str(error.value)
    assert "7b1e" not in str(error.value)


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def by_hand(header: Any, claims: Any, signature: bytes = b"") -> str:
    return ".".join(
        (b64(json.dumps(header).encode()), b64(json.dumps(claims).encode()), b64(signature))
    )


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (rsa("first"), "RS256"),
        (ec("curve"), "ES256"),
        (OKPKey.generate_key("Ed25519", {"kid": "ed"}), "Ed25519"),
    ],
    ids=["RS256", "ES256", "Ed25519"],
)
def test_a_token_that_is_right_is_taken(key: RSAKey | ECKey | OKPKey, algorithm: str) -> None:
    keys = usable_keys(published(key))
    assert check(signed(key, CLAIMS, algorithm), keys) == CLAIMS
    assert check(signed(key, {**CLAIMS, "aud": ["other", AUDIENCE]}, algorithm), keys)
    for kind in ("JWT", "at+jwt", "application/at+jwt", "AT+JWT"):
        assert check(signed(key, CLAIMS, algorithm, typ=kind), keys)
    assert check(signed(key, CLAIMS, algorithm, kid=None, nonce="of no use"), keys)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"aud": "others"}, "another audience"),
        ({"aud": ["others"]}, "another audience"),
        ({"aud": {AUDIENCE: 1}}, "another audience"),
        ({"aud": None}, "aud|missing"),
        ({"iss": ISSUER + "/"}, "another issuer"),
        ({"iss": [ISSUER]}, "another issuer"),
        ({"iss": ISSUER.upper()}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"sub": None}, "missing"),
        ({"sub": 7}, "missing or wrong"),
        ({"exp": None}, "missing"),
        ({"exp": NOW - 30}, "has expired"),
        ({"exp": str(NOW + 60)}, "missing or wrong"),
        ({"exp": True}, "missing or wrong"),
        ({"exp": 1e300}, "no end"),
        ({"exp": 10**400}, "no end|cannot be read"),
        ({"nbf": NOW + 31}, "not valid yet"),
        ({"nbf": "now"}, "not valid yet"),
        ({"iat": NOW + 31}, "issued in the future"),
    ],
    ids=str,
)
def test_claims_are_for_here_and_now(changes: dict[str, Any], words: str) -> None:
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    refused(signed(KEY, claims), words)


def test_clocks_may_differ_by_the_leeway_and_no_more() -> None:
    late, early = signed(KEY, {**CLAIMS, "exp": NOW}), signed(KEY, {**CLAIMS, "nbf": NOW})
    assert check(late, now=NOW + 29)
    assert check(early, now=NOW - 30)
    for token, now in ((late, NOW + 30), (early, NOW - 31)):
        with pytest.raises(Unauthenticated):
            check(token, now=now)


def test_no_end_that_is_no_number_lasts() -> None:
    for end in ("NaN", "Infinity", "-Infinity"):
        claims = json.dumps(CLAIMS).replace(str(NOW + 60), end).encode()
        header = b64(b'{"alg":"RS256","kid":"first"}')
        message = f"{header}.{b64(claims)}".encode()
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15  # noqa: PLC0415
        from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

        signature = KEY.private_key.sign(message, PKCS1v15(), SHA256())
        refused(f"{message.decode()}.{b64(signature)}", "missing or wrong")


def test_no_signature_is_no_token() -> None:
    for algorithm in ("none", "None", "NONE", "nOnE", ""):
        refused(
            by_hand({"alg": algorithm, "kid": "first"}, CLAIMS), "signed by none of|cannot be read"
        )
    header, claims, _ = signed(KEY, CLAIMS).split(".")
    refused(f"{header}.{claims}.", "wrong signature|cannot be read")


@pytest.mark.parametrize("form", ["pem", "der", "n", "jwk"])
def test_a_public_key_is_no_shared_secret(form: str) -> None:
    """HS256 with the public key as its secret (RFC 8725, section 2.1)."""
    public = KEY.as_dict(private=False)
    secret = {
        "pem": KEY.as_pem(private=False),
        "der": KEY.as_der(private=False),
        "n": str(public["n"]).encode(),
        "jwk": json.dumps(public).encode(),
    }[form]
    for algorithm, digest in (("HS256", hashlib.sha256), ("HS512", hashlib.sha512)):
        header = {"alg": algorithm, "kid": "first"}
        head = by_hand(header, CLAIMS).rpartition(".")[0]
        signature = hmac.new(secret, head.encode(), digest).digest()
        refused(f"{head}.{b64(signature)}", "signed by none of")


def test_an_algorithm_that_was_not_chosen_is_refused() -> None:
    plain = RSAKey.import_key(KEY.as_dict(private=True) | {"alg": "RS512"})
    refused(signed(plain, CLAIMS, "RS512"), "signed by none of RS256, ES256, Ed25519")


def test_a_key_is_used_for_what_it_is_published_for() -> None:
    """A key of RSA says RS256 alone, and one of another kind is none for that algorithm."""
    either = Verifier(ISSUER, AUDIENCE, ("RS256", "PS256"), leeway_s=0)
    plain = RSAKey.import_key(KEY.as_dict(private=True) | {"alg": "PS256"})
    with pytest.raises(UnknownKey):
        either.claims(signed(plain, CLAIMS, "PS256"), KEYS, NOW)
    with pytest.raises(UnknownKey):
        check(signed(ec("first"), CLAIMS, "ES256"))


def test_a_key_in_the_token_itself_is_not_the_issuers() -> None:
    evil = rsa("evil")
    public = evil.as_dict(private=False)
    forged = signed(evil, CLAIMS, kid="first", jwk=public, jku="https://evil.example/keys")
    refused(forged, "wrong signature")
    with pytest.raises(UnknownKey):
        check(signed(evil, CLAIMS, jwk=public))


def test_a_key_that_is_not_published_is_not_known() -> None:
    two = usable_keys(published(KEY, rsa("second")))
    with pytest.raises(UnknownKey):
        check(signed(rsa("third"), CLAIMS), two)
    with pytest.raises(UnknownKey):
        check(signed(KEY, CLAIMS, kid=None), two)  # which of the two is not said
    assert check(signed(rsa("second"), CLAIMS), two)


@pytest.mark.parametrize(
    "header",
    [
        {"crit": ["exp"], "exp": 1},
        {"crit": ["b64"], "b64": False},
        {"crit": ["policer"], "policer": 1},
        {"typ": "logout+jwt"},
        {"typ": "dpop+jwt"},
        {"typ": 7},
    ],
    ids=str,
)
def test_a_header_that_changes_what_the_token_is_refuses_it(header: dict[str, Any]) -> None:
    head = {"alg": "RS256", "kid": "first", **header}
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

    message = by_hand(head, CLAIMS).rpartition(".")[0]
    signature = KEY.private_key.sign(message.encode(), PKCS1v15(), SHA256())
    refused(f"{message}.{b64(signature)}", "cannot be read|another kind|wrong signature")


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b.c",
        "..",
        "e30.e30.e30",
        by_hand([], CLAIMS),
        by_hand("alg", CLAIMS),
        by_hand(7, CLAIMS),
        by_hand({"alg": ["RS256"]}, CLAIMS),
        by_hand({"alg": {}, "kid": {}}, CLAIMS),
        by_hand({"alg": "RS256", "kid": ["first"]}, CLAIMS),
        by_hand({"alg": "RS256", "kid": "x" * 5000}, CLAIMS),
        f"{b64(b'[' * 3000)}.e30.e30",
        f"{b64(b'{' * 3000)}.e30.e30",
        f"{b64(bytes(range(256)))}.e30.e30",
        "e30." + "A" * 20_000 + ".e30",
        "a.b.c.d.e",
    ],
    ids=lambda token: token[:20],
)
def test_what_cannot_be_read_is_refused_in_one_way(token: str) -> None:
    with pytest.raises(Unauthenticated):
        check(token)


@given(st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=200))
def test_no_bytes_do_anything_but_be_refused(one: bytes, two: bytes, three: bytes) -> None:
    with pytest.raises((Unauthenticated, UnknownKey)):
        check(f"{b64(one)}.{b64(two)}.{b64(three)}")


@given(st.data())
def test_no_change_of_a_token_leaves_it_a_token(data: st.DataObject) -> None:
    token = signed(KEY, CLAIMS)
    at = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.sampled_from("ABCDEFabcdef0123-_."))
    if token[at] == other:
        return
    with pytest.raises((Unauthenticated, UnknownKey)):
        check(token[:at] + other + token[at + 1 :])


def test_deep_claims_are_refused_though_the_issuer_signed_them() -> None:
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    assert check(signed(KEY, {**CLAIMS, "groups": deep}))
    assert values_of({"groups": deep}, "groups") == []


def test_keys_that_are_of_no_use_are_left_out() -> None:
    good = KEY.as_dict(private=False)
    weak = {**good, "kid": "weak", "n": good["n"][:170]}
    useless = [
        OctKey.generate_key(256, {"kid": "shared"}).as_dict(private=True),
        rsa("leaked").as_dict(private=True),
        {**good, "kid": "enc", "use": "enc"},
        {**good, "kid": "ops", "use": "sig", "key_ops": ["encrypt"]},
        {**good, "kid": "odd", "n": "!!"},
        {**good, "kid": "none", "n": None},
        weak,
        {"kty": "AKP", "kid": "future"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "off"},
        {"kid": "nothing"},
    ]
    raw = json.dumps({"keys": [*useless, good], "more": 1}).encode()
    assert [one.kid for one in usable_keys(raw)] == ["first"]


@pytest.mark.parametrize(
    "raw",
    [b"", b"[]", b"{}", b'{"keys": {}}', b'{"keys": []}', b'{"keys": [1]}', b"<html>", b"[" * 9999],
)
def test_what_is_no_set_of_keys_is_said(raw: bytes) -> None:
    with pytest.raises(ValueError, match="key"):
        usable_keys(raw)


GRANTS = (
    Grant("admins", "admin", UNLIMITED),
    Grant("acme", "operate", Reach(tenants=("acme",))),
    Grant("all", "read", UNLIMITED),
)


@pytest.mark.parametrize(
    ("values", "value"),
    [
        (["all", "acme"], "acme"),
        (["acme", "admins"], "admins"),
        (["all"], "all"),
        (["Admins", "admins "], None),
        ([], None),
    ],
)
def test_the_first_grant_that_fits_holds(values: list[str], value: str | None) -> None:
    found = granted(GRANTS, values)
    assert (found.value if found else None) == value


@pytest.mark.parametrize(
    ("claims", "name", "values"),
    [
        ({"groups": ["a", "b"]}, "groups", ["a", "b"]),
        ({"groups": "policer admins"}, "groups", ["policer admins"]),
        ({"scope": "policer admins"}, "scope", ["policer", "admins"]),
        ({"groups": [1, None, ["a"], "b"]}, "groups", ["b"]),
        ({"groups": {"a": 1}}, "groups", []),
        ({}, "groups", []),
        ({"realm_access": {"roles": ["a"]}}, "realm_access.roles", ["a"]),
        ({"realm_access": "x"}, "realm_access.roles", []),
        ({"a.b": ["flat"], "a": {"b": ["deep"]}}, "a.b", ["flat"]),
        ({"https://x.example/roles": ["a"]}, "https://x.example/roles", ["a"]),
    ],
)
def test_values_are_read_from_a_claim(claims: dict[str, Any], name: str, values: list[str]) -> None:
    assert values_of(claims, name) == values


def test_names_are_for_reading_and_subjects_are_whole() -> None:
    assert name_of({"n": "ann"}, "n", "7") == "ann"
    assert (
        name_of({"n": " "}, "n", "7") == name_of({"n": 3}, "n", "7") == name_of({}, "n", "7") == "7"
    )
    assert name_of({"n": "a\n\x1b[0mb" + 100 * "x"}, "n", "7").startswith("a??[0mbxx")
    assert len(name_of({"n": 100 * "x"}, "n", "7")) == 64
    assert subject_of({"sub": "7b1e"}) == "7b1e"
    for bad in ("", "a\nb", "x" * 256, None, 7):
        assert subject_of({"sub": bad}) == ""
