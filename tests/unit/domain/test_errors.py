"""Problems of the caller's making: a message, a pointer into the request, and how both move into a larger request."""

import pytest

from service.domain.errors import DoesNotFit, DomainError, InvalidRequest, NoOffer, UnknownName


@pytest.mark.parametrize("kind", [InvalidRequest, UnknownName, DoesNotFit, NoOffer])
def test_every_problem_says_what_and_where(kind: type[DomainError]) -> None:
    """A problem carries its message, its pointer, a title of its own and the status of a request that is understood but impossible."""
    problem = kind("too many heads", "/model/attention_heads")
    assert (str(problem), problem.message, problem.pointer, problem.status) == ("too many heads",) * 2 + ("/model/attention_heads", 422)
    assert problem.title != DomainError.title


@pytest.mark.parametrize("kind", [InvalidRequest, DoesNotFit, NoOffer])
def test_a_problem_inside_a_batch_points_there(kind: type[DomainError]) -> None:
    """Seen from a batch, the same problem is of the same kind and points below its own request."""
    moved = kind("no", "/data/tokens").below("/requests/3")
    assert (type(moved), moved.pointer, moved.message) == (kind, "/requests/3/data/tokens", "no")


def test_near_names_survive_the_move() -> None:
    """An unknown name keeps its suggestions when its pointer moves."""
    moved = UnknownName("no H1000", "/hardware/accelerator", near=["H100", "H200"]).below("/workload")
    assert isinstance(moved, UnknownName)
    assert (moved.near, moved.pointer) == (("H100", "H200"), "/workload/hardware/accelerator")
