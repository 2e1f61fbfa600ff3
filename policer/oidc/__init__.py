"""Tokens of an OpenID Connect issuer, which are taken next to the policer's own."""

from policer.oidc.issuer import Issuer, issuer_of, keys_found

__all__ = ["Issuer", "issuer_of", "keys_found"]
