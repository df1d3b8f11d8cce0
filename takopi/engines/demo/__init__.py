"""demo: an engine that is part of takopi and needs no account, no network and no model."""
