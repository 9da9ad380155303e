"""An error of Penstock that a test expects."""


class Refused:
    """A block that ends in this error, which says where, why and what next.
    `error` is the exception."""

    def __init__(self, case, kind, code, names):
        self.case, self.kind, self.code, self.names = case, kind, code, names
        self.error = None

    def __enter__(self):
        return self

    def __exit__(self, raised, error, _):
        if raised is None:
            self.case.fail(f"no {self.kind.__name__} was raised")
        if not issubclass(raised, self.kind):
            return False
        self.error = error.with_traceback(None)
        self.case.assertEqual(error.code, self.code, str(error))
        for part in ("what", "where", "why", "next"):
            self.case.assertTrue(getattr(error, part), f"{part}: {error}")
        for name in self.names:
            self.case.assertIn(name, str(error))
        return True
