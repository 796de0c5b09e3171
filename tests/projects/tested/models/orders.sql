{{ config(materialized='table') }}
select id, amount, buyer, paid_at, map('a', id) as tags
from values
  (current_timestamp(), 5, 'ann', timestamp '2024-05-01 10:00:00'),
  (current_timestamp(), 5, 'ann', timestamp '2024-05-02 10:00:00'),
  (current_timestamp(), null, 'bob', null),
  (current_timestamp(), 500, 'bob', null)
as t(id, amount, buyer, paid_at)
