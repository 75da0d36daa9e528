"""Fields of requests: those that are read, and those that are refused by name."""

from collections.abc import Collection, Mapping
from typing import Any

from tightship.driver.openai.openai_error import ApiError

IDLE = frozenset({"metadata", "user", "safety_identifier", "prompt_cache_key"})
"""Fields that change no answer."""
NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "n": (1,), "best_of": (1,), "logprobs": (False, 0), "top_logprobs": (0,), "echo": (False,),
    "presence_penalty": (0,), "frequency_penalty": (0,), "logit_bias": ({},), "tools": ([],),
    "functions": ([],), "tool_choice": ("none", "auto"), "function_call": ("none", "auto"),
    "parallel_tool_calls": (True, False), "modalities": (["text"],), "store": (False,),
    "service_tier": ("auto", "default"), "suffix": ("",), "verbosity": ("medium",),
    "reasoning_effort": (),
}  # fmt: skip
"""Fields that are not supported, and the values with which they say nothing."""


class Fields:
    """Fields of a request; None is as good as absent."""

    def __init__(self, given: object, known: Collection[str]) -> None:
        """Take the fields of a request.

        Args:
            given: The body, read as JSON.
            known: Fields that are read.

        Raises:
            ApiError: It is not an object, or has a field that is not supported.
        """
        if not isinstance(given, dict):
            raise ApiError(400, "the body is not a JSON object")
        self._given = {name: value for name, value in given.items() if value is not None}
        for name, value in self._given.items():
            if name in known or name in IDLE:
                continue
            neutral = NEUTRAL.get(name, ())
            if not any(value == each and type(value) is type(each) for each in neutral) and not (
                value == 0 and 0 in neutral and not isinstance(value, bool)
            ):
                only = f" with another value than {_listed(neutral)}" if neutral else ""
                raise ApiError(
                    400,
                    f"`{name}` is not supported{only}; supported are {', '.join(sorted(known))}",
                    code="unsupported_parameter",
                    param=name,
                )

    def has(self, name: str) -> bool:
        """Whether a field is there."""
        return name in self._given

    def get(self, name: str) -> Any:  # noqa: ANN401  a value of JSON
        """Return the value of a field; None if it is absent."""
        return self._given.get(name)

    def text(self, name: str) -> str:
        """Return a text that has to be there.

        Raises:
            ApiError: The field is missing, or not a text.
        """
        found = self._given.get(name)
        if not isinstance(found, str):
            raise wrong(name, "a text")
        return found

    def flag(self, name: str) -> bool:
        """Return a truth value; False if it is absent.

        Raises:
            ApiError: The field is neither true nor false.
        """
        found = self._given.get(name, False)
        if not isinstance(found, bool):
            raise wrong(name, "true or false")
        return found

    def integer(self, name: str) -> int | None:
        """Return an integer; None if it is absent.

        Raises:
            ApiError: The field is not an integer.
        """
        found = self._given.get(name)
        if found is not None and (isinstance(found, bool) or not isinstance(found, int)):
            raise wrong(name, "an integer")
        return found

    def number(self, name: str, default: float) -> float:
        """Return a number, or the default.

        Raises:
            ApiError: The field is not a number.
        """
        found = self._given.get(name, default)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise wrong(name, "a number")
        return float(found)


def wrong(name: str, wanted: str) -> ApiError:
    """Return the error for a field that is absent or of another type."""
    return ApiError(400, f"`{name}` must be {wanted}", code="invalid_type", param=name)


def _listed(values: tuple[object, ...]) -> str:
    return " or ".join(map(str, values))
