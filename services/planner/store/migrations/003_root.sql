-- The generation root that a by-binding result stands in (protocol.md 8): gateways compare it with the one they see. NULL: in place, or unknown.
ALTER TABLE kiln.generation ADD COLUMN root uuid;
