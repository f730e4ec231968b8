"""A machine whose accelerators are limited in power: slower work on the device, less draw.

Left out: how much longer a device that waits for its host or its network may take without anybody noticing.
"""

from __future__ import annotations

from dataclasses import replace

from service.domain.quantities import Range
from service.domain.training.utilisation import Utilisation
from service.engine.numerics.ranges import inverse, product

# What a device does faster with a higher clock: shares that fall and times that grow as it slows down.
DEVICE_SHARES = ("matmul_share", "attention_share")
DEVICE_TIMES = ("operand_share", "tile_s", "activation_passes")


def limit_power(utilisation: Utilisation, relative_time: Range) -> Utilisation:
    """The utilisation of a device that takes longer for all its work; links, network and host stay as they are.

    Parameters
    ----------
    utilisation : Utilisation
        At the highest limit.
    relative_time : Range
        Time at the limit over that at the highest [1].

    Returns
    -------
    Utilisation
        With the range of the relative time in its own.
    """
    slower = relative_time.p50
    scaled = {name: getattr(utilisation, name) / slower for name in DEVICE_SHARES}
    scaled |= {name: getattr(utilisation, name) * slower for name in DEVICE_TIMES}
    other = utilisation.other_share
    factors = (utilisation.spread, inverse(relative_time.scaled(1 / slower)))
    return replace(utilisation, **scaled, other_share=None if other is None else other / slower, spread=product(1.0, factors))


def watts_at_limit(watts: float, accelerator_watts: float, relative_power: float) -> float:
    """Mean power of an accelerator with its share of the node: the node's part stays.

    Parameters
    ----------
    watts : float
        At the highest limit [W].
    accelerator_watts : float
        What of it the accelerator itself draws [W].
    relative_power : float
        Draw at the limit over that at the highest [1].

    Returns
    -------
    float
        [W].
    """
    return watts - accelerator_watts * (1 - relative_power)
