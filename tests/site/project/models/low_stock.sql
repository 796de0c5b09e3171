with pieces as (
  select after['sku'] as sku, max_by(cast(after['pieces'] as int), seq) as pieces
  from {{ ref('stock_to_changelog') }}
  where kind = 'row' and after is not null
  group by all
),
week as (
  select count(*) as orders
  from {{ ref('orders') }}
  where status <> 'cancelled'
)
select pieces.sku, pieces.pieces, week.orders
from pieces cross join week
where pieces.pieces < week.orders
