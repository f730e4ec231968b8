"""Rotation of the key that secrets in the database are sealed with."""

from __future__ import annotations

from service.context import AppContext
from service.store import LostSecrets
from service.store.secret_keys import FILE, add_key, new_key


def make_key() -> str:
    """A key for OUTLAY_SECRETS_KEY."""
    return new_key()


def seal_plain(context: AppContext) -> int:
    """Seal the secrets that a release before sealing stored; returns the number of rows. The first call of an installation makes the key.

    Raises SecretsUnavailable, and changes nothing, where this machine has not the installation's key.
    """
    context.store.check_secrets()
    return _reseal(context, plain_only=True)


def rotate_key(context: AppContext) -> int:
    """Add a new key to the file, and seal all stored secrets under it; returns the number of rows.

    A key in OUTLAY_SECRETS_KEY is added there: then only the sealing is done. Remembered answers go on being opened by the earlier key,
    which the file keeps until the next rotation. Raises SecretsUnavailable and OSError.
    """
    context.store.check_secrets()
    if not context.settings.secrets_key:
        add_key(context.settings.data_dir / FILE)
    sealed = _reseal(context, plain_only=False)
    context.store.reseal_check()
    return sealed


def find_lost(context: AppContext) -> LostSecrets:
    """What `drop_lost` would drop. Raises StoreUnavailable."""
    return context.store.lost_secrets()


def drop_lost(context: AppContext) -> LostSecrets:
    """Drop the secrets that no key of this machine opens: their rules end. Raises StoreUnavailable and SecretsUnavailable.

    The installation goes on with the key that is here, or with a new one.
    """
    dropped = context.store.drop_secrets(context.clock())
    context.store.check_secrets()
    return dropped


def _reseal(context: AppContext, *, plain_only: bool) -> int:
    store = context.store
    columns = (store.reseal_rules, store.reseal_scenarios, store.reseal_slack_webhooks)
    return sum(reseal(plain_only=plain_only) for reseal in columns)
