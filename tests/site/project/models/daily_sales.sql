-- A day is a day of the shop, not of UTC.
select
  to_date(from_utc_timestamp(changed_at, 'Asia/Shanghai')) as day,
  count(*) as orders,
  sum(amount) as sold
from {{ ref('orders') }}
where status in ('paid', 'shipped')
group by all
