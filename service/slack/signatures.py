"""Requests that Slack has signed: verified over the bytes as they arrived, within five minutes, and each once.

Reference: docs.slack.dev/authentication/verifying-requests-from-slack, version v0 (HMAC-SHA-256).
"""

from __future__ import annotations

import logging
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from slack_sdk.signature import Clock, SignatureVerifier

from service.cache import Cache

log = logging.getLogger(__name__)

TIMESTAMP_HEADER = "X-Slack-Request-Timestamp"
SIGNATURE_HEADER = "X-Slack-Signature"
MAX_AGE_S = 300
BUCKET_S = 2 * MAX_AGE_S
"""Signatures of one bucket are forgotten together: a timestamp may be as far ahead of the clock as behind it."""
CACHE_WAIT_S = 0.15
"""Slack's patience is short, and a first connection to a Redis that hangs takes longer."""
_ASKING = ThreadPoolExecutor(1, thread_name_prefix="slack-signatures")
_TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}", re.ASCII)


class BadSignature(Exception):
    """The request is not one that Slack has signed just now; the text gives the reason."""


class SeenSignatures:
    """Signatures that have been used, for all processes of this machine: an empty file for each, in a folder for each ten minutes."""

    def __init__(self, folder: Path, cache: Cache | None) -> None:
        """`cache`: the one that several machines share; None: there is one machine."""
        self._folder = folder
        self._cache = cache

    def is_first(self, signature: str, signed_s: int, now_s: float) -> bool:
        """Whether a valid signature is used for the first time. Raises OSError where it cannot be remembered."""
        bucket = self._folder / str(signed_s // BUCKET_S)
        if not bucket.exists():
            self._forget(int(now_s) // BUCKET_S - 2)
            bucket.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            (bucket / signature.removeprefix("v0=")).touch(mode=0o600, exist_ok=False)
        except FileExistsError:
            return False
        return self._cache is None or _is_first_in(self._cache, signature)

    def _forget(self, newest: int) -> None:
        """Delete buckets up to this number."""
        with suppress(FileNotFoundError):
            for bucket in self._folder.iterdir():
                if int(bucket.name) <= newest:
                    shutil.rmtree(bucket, ignore_errors=True)


def _is_first_in(cache: Cache, signature: str) -> bool:
    """Whether no machine that shares the cache has used the signature; True where the cache does not answer in time."""
    counted = _ASKING.submit(cache.count, f"slack:{signature}", BUCKET_S + MAX_AGE_S)
    try:
        found = counted.result(CACHE_WAIT_S)
    except TimeoutError:
        log.warning("the cache does not answer: whether another machine has taken a request of Slack is not known")
        return True
    return found is None or found[0] == 1


def verify(secret: str, body: bytes, timestamp: str, signature: str, now: datetime, seen: SeenSignatures) -> None:
    """Return where Slack has signed this body within five minutes and it was not sent before. Raises BadSignature and OSError."""
    if not _TIMESTAMP.fullmatch(timestamp) or not _SIGNATURE.fullmatch(signature):
        raise BadSignature(f"{TIMESTAMP_HEADER} or {SIGNATURE_HEADER} is missing or malformed.")
    if not SignatureVerifier(secret, _At(now)).is_valid(_text(body), timestamp, signature):
        raise BadSignature("The signature is not that of this body, or it is older than five minutes.")
    if not seen.is_first(signature, int(timestamp), now.timestamp()):
        raise BadSignature("This request was sent before.")


class _At(Clock):
    """A clock that stands still."""

    def __init__(self, moment: datetime) -> None:
        self._moment_s = moment.timestamp()

    def now(self) -> float:
        """The time [s]."""
        return self._moment_s


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise BadSignature("The body is not UTF-8.") from error
