-- Version 4: a loop knows the logic that wrote it. Never edited once released: a
-- later change is a further file.
--
-- A logic is known by its name. Loops and archives from before are the built-in
-- logic's, and so are those of an older export that name none.

ALTER TABLE loop ADD COLUMN logic TEXT NOT NULL DEFAULT 'loop-state';
-- The version that began the loop; unknown for those from before.
ALTER TABLE loop ADD COLUMN logic_version TEXT;
-- To learn at the opening whether there are loops of other logics.
CREATE INDEX loop_by_logic ON loop (logic);

ALTER TABLE loop_archive ADD COLUMN logic TEXT NOT NULL DEFAULT 'loop-state';
