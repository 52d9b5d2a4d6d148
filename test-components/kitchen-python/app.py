"""The kitchen in Python. An `err` is raised, and `none` is None."""

from componentize_py_types import Err

from wit_world import exports
from wit_world.exports.kitchen import (
    Allergens,
    Doneness,
    OrderLine,
    OrderState,
    OrderState_Cooking,
    OrderState_Queued,
    OrderState_Served,
    Refusal_Closed,
    Refusal_UnknownDish,
)

PRICES = {"soup": 450, "steak": 1990}

bell_rings = 0


class Kitchen(exports.Kitchen):
    def add(self, a: int, b: int) -> int:
        # Python's integers do not wrap by themselves.
        return (a + b + 2**31) % 2**32 - 2**31

    def join(self, words: list[str], separator: str) -> str:
        return separator.join(words)

    def count_dishes(self, lines: list[OrderLine]) -> int:
        return sum(line.quantity for line in lines)

    def one_more(self, line: OrderLine) -> OrderLine:
        line.quantity = (line.quantity + 1) % 256
        return line

    def advance(self, state: OrderState) -> OrderState:
        match state:
            case OrderState_Queued(0):
                return OrderState_Cooking()
            case OrderState_Queued(place):
                return OrderState_Queued(place - 1)
            case OrderState_Cooking():
                return OrderState_Served("1")
        return state

    def cook_longer(self, level: Doneness) -> Doneness:
        return Doneness(min(level.value + 1, Doneness.WELL_DONE.value))

    def clash(self, guest: Allergens, dish: Allergens) -> Allergens:
        return guest & dish

    def find(self, lines: list[OrderLine], dish: str) -> OrderLine | None:
        return next((line for line in lines if line.dish == dish), None)

    def price(self, dish: str) -> int:
        if not dish:
            raise Err(Refusal_Closed())
        if dish not in PRICES:
            raise Err(Refusal_UnknownDish(dish))
        return PRICES[dish]

    def min_max(self, numbers: list[float]) -> tuple[float, float]:
        return min(numbers, default=0.0), max(numbers, default=0.0)

    def reverse(self, bytes: bytes) -> bytes:
        return bytes[::-1]

    def ring_bell(self) -> None:
        global bell_rings
        bell_rings += 1
