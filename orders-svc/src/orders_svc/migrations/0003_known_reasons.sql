-- Why orders were cancelled, as `events.to_reason` reads it: text that a caller wrote could name a person.

UPDATE order_summaries
SET reason = 'other'
WHERE status = 'cancelled'
  AND reason NOT IN ('changed-my-mind', 'ordered-by-mistake', 'found-cheaper', 'takes-too-long');
