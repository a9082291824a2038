"""A plan of actions, made from a seed alone: what is done, when it is due, its business time."""

import math
from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from verification.load.actions import (
    Action,
    CancelOrder,
    CorrectOrigin,
    ListItem,
    MoveUser,
    PlaceOrder,
    Planned,
    RegisterUser,
    Repeat,
    RepriceItem,
)
from verification.load.window import Window

SHARES = {
    PlaceOrder: 0.68,
    CancelOrder: 0.07,
    Repeat: 0.09,
    MoveUser: 0.06,
    RepriceItem: 0.04,
    CorrectOrigin: 0.02,
    RegisterUser: 0.03,
    ListItem: 0.01,
}
"""Of the traffic, by kind."""

PLACES = ("BJ", "SH", "SZ", "GZ", "CD")
TYPES = ("phone", "pad", "watch", "pod")
GENDERS = ("female", "male", "other")
LINES_MAX = 3
QUANTITY_MAX = 3
PRICE_CENTS_MAX = 200_000
CREDIT_CENTS = (500_000, 20_000_000)
"""Lowest and highest limit: hot users order for more than that."""
CANCELLED_AFTER_ORDERS = 15
REPEATED_AFTER_ACTIONS = 10
"""On average."""
NUDGES = 10

BURST_MAX = 20
"""Times the rate. A client that cannot keep its own rate measures itself."""
BURST_SHARE = 1 / 5
"""Of the seconds of a plan; it begins when half of them are over."""
BURST_SECONDS_MAX = 30.0
"""An order that waits longer than a minute is sent again and again, and then given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The size of a plan. `rate` is in actions a second, and `burst` times as high for a part of
    the time; `late` is the number of orders that are placed at the end and are too late."""

    seed: int
    rate: int
    seconds: int
    users: int
    items: int
    late: int = 0
    burst: int = 1

    @property
    def created(self) -> int:
        """The actions at the beginning, which create what the others are about."""
        return self.users + self.items


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """When actions are due at `times` the rate, in seconds since the first action of the plan."""

    times: int
    begins: float
    ends: float


def place_burst(scale: Scale) -> Burst | None:
    """The burst of a plan; None where the rate is constant."""
    if scale.burst == 1:
        return None
    begins = scale.created + scale.rate * scale.seconds // 2
    seconds = min(BURST_SHARE * scale.seconds, BURST_SECONDS_MAX)
    ends = begins + math.ceil(seconds * scale.rate)
    return Burst(times=scale.burst, begins=begins / scale.rate, ends=ends / scale.rate)


def schedule(scale: Scale) -> list[float]:
    """When each action is due: one by one at the rate, `burst` at a time while there is one."""
    burst, due = place_burst(scale), []
    for number in range(scale.created + scale.rate * scale.seconds):
        begins = number / scale.rate
        times = burst.times if burst and burst.begins <= begins < burst.ends else 1
        due += [begins + part / times / scale.rate for part in range(times)]
    return due


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`actions` in the order of their numbers; `late` is sent when all of them are counted. Before
    that any number of `nudges` can be sent, so no other action refers to the items they list."""

    actions: Sequence[Planned]
    late: Sequence[Planned]
    nudges: Sequence[Planned]


def create_plan(scale: Scale, window: Window) -> Plan:
    """The same for the same scale and window. It begins by creating the users and items."""
    planner = Planner(scale.seed, window)
    makers: list[Callable[[float], Action]] = [planner.register_user] * scale.users
    makers += [planner.list_item] * scale.items
    for make in makers:
        planner.add(make(0.0))
    due = schedule(scale)
    made, count = len(due), len(due) - scale.created
    for number in range(count):
        planner.add(planner.any(number / count))
    for _ in range(scale.late):
        planner.add(planner.place_late_order())
    for _ in range(NUDGES):
        planner.add(planner.list_item(1.0))
    due += [due[-1] + more / scale.rate for more in range(1, len(planner.actions) - made + 1)]
    planned = [
        Planned(number=number, due_seconds=seconds, action=action)
        for number, (seconds, action) in enumerate(zip(due, planner.actions, strict=True))
    ]
    late = made + scale.late
    return Plan(actions=planned[:made], late=planned[made:late], nudges=planned[late:])


class Planner:
    """The random generator, and what exists so far. Low numbers are hot: the second user is half as
    busy as the first, the third a third as busy."""

    def __init__(self, seed: int, window: Window) -> None:
        self.actions: list[Action] = []
        self._rng = Random(seed)
        self._window = window
        self._users = Population()
        self._items = Population()
        self._orders = 0

    def add(self, action: Action) -> None:
        self.actions.append(action)

    def any(self, progress: float) -> Action:
        """An action at `progress` of the run, from 0 to 1."""
        makers: dict[type[Action], Callable[[float], Action]] = {
            PlaceOrder: self.place_order,
            CancelOrder: self.cancel_order,
            Repeat: self.repeat,
            MoveUser: self.move_user,
            RepriceItem: self.reprice_item,
            CorrectOrigin: self.correct_origin,
            RegisterUser: self.register_user,
            ListItem: self.list_item,
        }
        [kind] = self._rng.choices(list(SHARES), list(SHARES.values()))
        return makers[kind](progress)

    def register_user(self, progress: float) -> RegisterUser:
        return RegisterUser(
            user=self._users.grow(),
            address=self._place(),
            gender=self._rng.choice(GENDERS),
            credit_limit=money(self._rng.randint(*CREDIT_CENTS)),
            effective_at=self._window.changed_at(self._rng, progress),
        )

    def list_item(self, progress: float) -> ListItem:
        return ListItem(
            item=self._items.grow(),
            type=self._rng.choice(TYPES),
            origin=self._place(),
            price=self._price(),
            effective_at=self._window.changed_at(self._rng, progress),
        )

    def move_user(self, progress: float) -> MoveUser:
        return MoveUser(
            user=self._users.pick(self._rng),
            address=self._place(),
            effective_at=self._window.changed_at(self._rng, progress),
        )

    def reprice_item(self, progress: float) -> RepriceItem:
        return RepriceItem(
            item=self._items.pick(self._rng),
            price=self._price(),
            effective_at=self._window.changed_at(self._rng, progress),
        )

    def correct_origin(self, progress: float) -> CorrectOrigin:
        return CorrectOrigin(
            item=self._items.pick(self._rng),
            origin=self._place(),
            effective_at=self._window.changed_at(self._rng, progress),
        )

    def place_order(self, progress: float) -> PlaceOrder:
        lines = tuple(
            (self._items.pick(self._rng), self._rng.randint(1, QUANTITY_MAX))
            for _ in range(self._rng.randint(1, LINES_MAX))
        )
        self._orders += 1
        return PlaceOrder(
            order=self._orders - 1,
            user=self._users.pick(self._rng),
            lines=lines,
            ordered_at=self._window.ordered_at(self._rng, progress),
        )

    def place_late_order(self) -> PlaceOrder:
        """By any user with equal probability: hot users have no credit left."""
        self._orders += 1
        return PlaceOrder(
            order=self._orders - 1,
            user=self._users.pick_any(self._rng),
            lines=((self._items.pick(self._rng), 1),),
            ordered_at=self._window.too_late(self._rng),
        )

    def cancel_order(self, progress: float) -> Action:
        """One of the last orders, which can still be pending, or already cancelled."""
        if not self._orders:
            return self.place_order(progress)
        back = int(self._rng.expovariate(1 / CANCELLED_AFTER_ORDERS))
        return CancelOrder(order=max(0, self._orders - 1 - back))

    def repeat(self, progress: float) -> Repeat:
        """One of the last actions; a repeat is repeated again."""
        back = int(self._rng.expovariate(1 / REPEATED_AFTER_ACTIONS))
        number = max(0, len(self.actions) - 1 - back)
        action = self.actions[number]
        return action if isinstance(action, Repeat) else Repeat(of=number)

    def _place(self) -> str:
        return self._rng.choice(PLACES)

    def _price(self) -> str:
        return money(self._rng.randint(1, PRICE_CENTS_MAX))


class Population:
    """Numbers from 0 on; the higher a number, the less often it is picked (Zipf's law)."""

    def __init__(self) -> None:
        self._weights = [0.0]
        """Cumulative, for a binary search."""

    def grow(self) -> int:
        number = len(self._weights) - 1
        self._weights.append(self._weights[-1] + 1 / (number + 1))
        return number

    def pick(self, rng: Random) -> int:
        last = len(self._weights) - 1
        return bisect(self._weights, rng.random() * self._weights[-1], hi=last) - 1

    def pick_any(self, rng: Random) -> int:
        return rng.randrange(len(self._weights) - 1)


def money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"
