# SPDX-License-Identifier: Apache-2.0
"""The one family of exceptions. `code` is a word of `hasten/result.h`, `hint` what to do next."""


class HastenError(RuntimeError):
    """What failed and on what, in one sentence."""

    def __init__(self, message: str, code: str = "internal", hint: str = ""):
        super().__init__(message)
        self.message, self.code, self.hint = message, code, hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message

    def __reduce__(self):
        return type(self), (self.message, self.code, self.hint)


class InvalidArgument(HastenError, ValueError):
    """The caller's mistake."""

    def __init__(self, message: str, code: str = "invalid_argument", hint: str = ""):
        super().__init__(message, code, hint)
