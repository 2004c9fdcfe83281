"""Owns credentials: whom the header of a request names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.errors import Unauthenticated
from omnigraph.model.caller import Caller
from omnigraph.policy.tokens import Tokens, is_token

if TYPE_CHECKING:
    from omnigraph.policy.oidc import Oidc

ANONYMOUS = "anonymous"


class BearerCredentials:
    """Tokens of a file, of an issuer, or of both. `anonymous` is the role of who gives none; if
    there is none, nobody is let in without a token."""

    def __init__(
        self,
        tokens: Tokens | None = None,
        oidc: Oidc | None = None,
        *,
        anonymous: str | None = None,
    ) -> None:
        self._tokens = tokens
        self._oidc = oidc
        self._anonymous = anonymous

    def caller_of(self, header: str | None) -> Caller:
        """Raises `Unauthenticated`. A token that is wrong is never taken for none."""
        if header is None:
            if self._anonymous is None:
                raise Unauthenticated("There is no token.")
            return Caller(ANONYMOUS, roles=frozenset({self._anonymous}))
        scheme, _, token = header.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or not token.isascii():
            raise Unauthenticated("The header is not 'Authorization: Bearer TOKEN'.")
        if is_token(token):
            if self._tokens is not None:
                return self._tokens.caller_of(token)
        elif self._oidc is not None:
            return self._oidc.caller_of(token)
        raise Unauthenticated("The token is not known here, or it has ended.")
