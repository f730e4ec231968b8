"""`outlay secrets`."""

from __future__ import annotations

from service.config import Settings
from service.store.secret_keys import FILE
from tests.unit.cli.invoke import output_of, run


def test_a_lost_key_is_dropped_after_a_confirmation(settings: Settings) -> None:
    """Without one nothing changes; afterwards there is a key again."""
    output_of(settings, "secrets", "rotate")
    (settings.data_dir / FILE).unlink()
    assert run(settings, "secrets", "rotate").exit_code == 1
    assert run(settings, "secrets", "drop").exit_code == 1
    assert not (settings.data_dir / FILE).exists()
    assert output_of(settings, "secrets", "drop", "--yes").startswith("dropped: 0 alert rules")
    assert (settings.data_dir / FILE).exists()
    output_of(settings, "secrets", "rotate")
