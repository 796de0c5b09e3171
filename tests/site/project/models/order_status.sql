-- Every change of an order's status, in the order in which they happened.
select
  after['id'] as order_id,
  row_number() over (partition by key_text order by seq) as step,
  before['status'] as status_before,
  after['status'] as status,
  event_time as changed_at
from {{ ref('changelog') }}
where source = 'shop'
  and table_name = 'orders'
  and after is not null
  and (op <> 'update' or array_contains(changed, 'status'))
