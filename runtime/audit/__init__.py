"""The dynamic audit: measure the effect of every cast on real data, and its share in the errors."""

from typing import TYPE_CHECKING

from graphir.import_names import import_lazily

if TYPE_CHECKING:
    from graphir.runtime.audit.audit import audit as audit

import_lazily(__name__, {"graphir.runtime.audit.audit": "audit"})
