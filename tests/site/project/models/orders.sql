with changes as (
  select *, row_number() over (partition by key_text order by seq desc) as newest
  from {{ ref('changelog') }}
  where source = 'shop' and table_name = 'orders'
)
select
  after['id'] as order_id,
  after['customer_id'] as customer_id,
  after['status'] as status,
  try_cast(after['amount'] as decimal(10, 2)) as amount,
  event_time as changed_at
from changes
where newest = 1 and op <> 'delete'
