"""Teams, their keys and remembered answers, the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from service.domain.idempotency import IdempotencyKeyReused, IdempotencyRecord, IdempotentReplay, StoredResponse
from service.domain.teams import DEFAULT_TEAM, Key
from service.store import Store
from service.store.idempotency import KEY_RETENTION, store_response
from service.store.tables import api_keys, idempotency_keys, teams

NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
ROOT = Path(__file__).parents[3]
MANY = 50


def key_of(store: Store, key_id: str = "00ff00ff00ff00ff", team: str = "vision", **values: Any) -> Key:
    """A key that is kept, its digest made of its id."""
    owner = store.team(team, NOW)
    key = replace(Key(key_id, owner.id, team, "ci", ("read", "write"), NOW, LATER, None), **values)
    store.create_key(key, key_id * 4)
    return key


class TestTeams:
    def test_a_team_is_made_once(self, store: Store) -> None:
        """Its name stands for the same team from then on."""
        made = store.team("vision", NOW)
        assert store.team("vision", LATER) == made
        assert store.team("speech", NOW).id != made.id

    def test_the_default_team_is_the_one_of_before_there_were_keys(self, store: Store) -> None:
        """A key of that name goes on with its data."""
        assert store.team(DEFAULT_TEAM, NOW).id == DEFAULT_TEAM

    def test_two_that_make_a_team_at_once_get_the_same(self, store: Store) -> None:
        """Neither fails."""
        barrier = Barrier(4)

        def make(_: int) -> str:
            barrier.wait()
            return store.team("vision", NOW).id

        with ThreadPoolExecutor(4) as pool:
            assert len(set(pool.map(make, range(4)))) == 1
        with store.engine.connect() as connection:
            assert connection.scalar(select(func.count()).select_from(teams).where(teams.c.name == "vision")) == 1


class TestKeys:
    def test_a_key_comes_back_with_its_digest_and_its_team(self, store: Store) -> None:
        """By its id; of another id nothing is known."""
        key = key_of(store)
        assert store.find_key(key.id) == (key, key.id * 4)
        assert store.find_key("f" * 16) is None

    def test_keys_are_listed_by_team_and_age(self, store: Store) -> None:
        """Those that are no good any more too."""
        old, new = key_of(store, "2" * 16), key_of(store, "1" * 16, created_at=LATER)
        other = key_of(store, "3" * 16, team="speech", expires_at=None)
        assert store.keys() == (other, old, new)

    def test_a_revoked_key_stays_revoked(self, store: Store) -> None:
        """Its time is that of the first revocation; revoking an unknown key changes nothing."""
        key = key_of(store)
        assert store.revoke_key(key.id, NOW) == replace(key, revoked_at=NOW)
        assert store.revoke_key(key.id, LATER) == replace(key, revoked_at=NOW)
        assert store.revoke_key("f" * 16, NOW) is None

    def test_no_two_keys_have_one_secret(self, store: Store) -> None:
        """The database itself refuses."""
        key = key_of(store)
        with pytest.raises(IntegrityError):
            store.create_key(replace(key, id="f" * 16), key.id * 4)

    def test_a_person_who_signs_in_again_is_the_same_key(self, store: Store) -> None:
        """With the name, scopes and end of the last time; a revocation of before does not hold."""
        made = key_of(store)
        person = replace(made, id="p" + "A" * 15, scopes=("read",))
        store.put_person(person, "1" * 64)
        store.revoke_key(person.id, NOW)
        store.put_person(replace(person, name="ada", scopes=("read", "write"), created_at=LATER, expires_at=LATER), "2" * 64)
        found = store.find_key(person.id)
        assert found == (replace(person, name="ada", scopes=("read", "write"), expires_at=LATER), "1" * 64)
        assert found[0].is_person
        assert not made.is_person

    def test_a_person_who_signs_in_twice_at_once_is_one_key(self, store: Store) -> None:
        """Both sign-ins succeed."""
        person = replace(key_of(store), id="p" + "B" * 15)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: store.put_person(person, f"{number}" * 64), range(4)))
        assert [key.id for key in store.keys() if key.is_person] == [person.id]  # noqa: SIM118 - no dictionary

    def test_a_team_is_found_by_its_name(self, store: Store) -> None:
        """One that is not there is not made."""
        made = store.team("vision", NOW)
        assert (store.find_team("vision"), store.find_team("speech")) == (made, None)

    def test_a_service_has_keys_from_the_first_one_on(self, store: Store) -> None:
        """A revoked one counts: taking the last key back does not open the doors."""
        assert not store.any_key()
        store.revoke_key(key_of(store).id, NOW)
        assert store.any_key()

    def test_a_database_without_the_table_has_no_keys(self, open_store: Callable[[str], Store], url: str) -> None:
        """Nor has one that was never made."""
        assert not open_store(url).any_key()

    def test_the_columns_of_a_key_are_its_fields(self) -> None:
        """The digest aside, which nobody but the door needs."""
        assert set(Key.__dataclass_fields__) == set(api_keys.columns.keys()) - {"digest"} | {"team_name"}


class Maker:
    """Makes rows of teams, as an example of something whose making must not happen twice."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def make(self, name: str, asked: IdempotencyRecord | None) -> str:
        """The name of what was made."""
        with self.store._write() as connection:
            remembered = store_response(connection, asked)
            connection.execute(teams.insert().values(id=name, name=name, created_at=NOW))
            remembered(name)
        return name

    def made(self) -> int:
        """How many were made."""
        with self.store.engine.connect() as connection:
            return connection.scalar(select(func.count()).select_from(teams).where(teams.c.id != DEFAULT_TEAM)) or 0


@pytest.fixture
def maker(store: Store) -> Maker:
    """One on each database."""
    return Maker(store)


def asked(digest: str = "d", team: str = "t", at: datetime = NOW, key: str = "k") -> IdempotencyRecord:
    """What comes with an Idempotency-Key."""
    return IdempotencyRecord(team, key, digest, at, lambda made: StoredResponse(201, {"id": made, "share": 0.1}, f"/things/{made}"))


def answer_of(maker: Maker, name: str, given: IdempotencyRecord) -> StoredResponse:
    """What a caller is told, whether it was made now or before."""
    try:
        return given.answer(maker.make(name, given))
    except IdempotentReplay as repeated:
        return repeated.answer


class TestRememberedAnswers:
    def test_the_same_asked_again_gets_the_first_answer(self, maker: Maker) -> None:
        """To the last digit, and nothing is made."""
        first = answer_of(maker, "a", asked())
        assert answer_of(maker, "b", asked()) == first == StoredResponse(201, {"id": "a", "share": 0.1}, "/things/a")
        assert maker.made() == 1

    def test_something_else_under_the_same_key_is_refused(self, maker: Maker) -> None:
        """Nothing is made, and the first answer stays."""
        answer_of(maker, "a", asked())
        with pytest.raises(IdempotencyKeyReused):
            maker.make("b", asked(digest="other"))
        assert maker.made() == 1
        assert answer_of(maker, "c", asked()).body["id"] == "a"

    def test_keys_are_each_teams_own(self, maker: Maker) -> None:
        """Two teams may hit on the same key, and neither learns of the other."""
        assert answer_of(maker, "a", asked()).body["id"] == "a"
        assert answer_of(maker, "b", asked(team="other", digest="other")).body["id"] == "b"

    def test_without_a_key_everything_is_made(self, maker: Maker) -> None:
        """As ever."""
        assert [maker.make(name, None) for name in "ab"] == ["a", "b"]
        assert maker.made() == 2

    def test_what_failed_was_not_answered(self, maker: Maker) -> None:
        """The making and the memory are one transaction: the key is free again."""
        maker.make("a", None)
        with pytest.raises(IntegrityError):
            maker.make("a", asked())
        assert answer_of(maker, "b", asked()).body["id"] == "b"

    def test_fifty_at_once_make_one(self, maker: Maker) -> None:
        """All get the answer of the one that came first."""
        barrier = Barrier(10)

        def ask(number: int) -> StoredResponse:
            if number < 10:
                barrier.wait()
            return answer_of(maker, str(number), asked())

        with ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(ask, range(MANY)))
        assert maker.made() == 1
        assert all(answer == answers[0] for answer in answers)
        assert len(answers) == MANY

    def test_a_process_killed_before_it_could_answer_has_answered(self, maker: Maker, url: str) -> None:
        """Killed between commit and answer: whoever asks again gets what was made then."""
        script = (
            "import os, signal, sys; from tests.contract.store.test_keys import Maker, asked; from service.store import Store;"
            "Maker(Store(sys.argv[1])).make('before', asked()); os.kill(os.getpid(), signal.SIGKILL)"
        )
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        killed = subprocess.run([sys.executable, "-c", script, url], env=environment, check=False, capture_output=True)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert answer_of(maker, "after", asked()).body["id"] == "before"
        assert maker.made() == 1

    def test_answers_are_forgotten_after_a_day(self, maker: Maker) -> None:
        """Not before; what was made stays, and the key can be used again."""
        answer_of(maker, "a", asked())
        answer_of(maker, "b", asked(key="later", at=NOW + timedelta(hours=1)))
        assert maker.store.delete_old_responses(NOW + KEY_RETENTION) == 0
        assert maker.store.delete_old_responses(NOW + KEY_RETENTION + timedelta(seconds=1)) == 1
        assert maker.made() == 2
        assert answer_of(maker, "c", asked(digest="other")).body["id"] == "c"

    def test_nobody_sees_an_answer_that_is_not_given_yet(self, maker: Maker) -> None:
        """The row without an answer exists inside its transaction alone."""
        with maker.store._write() as connection:
            store_response(connection, asked())
            with maker.store.engine.connect() as other:
                assert other.scalar(select(func.count()).select_from(idempotency_keys)) == 0
