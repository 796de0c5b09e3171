-- Refunds are no payments: what an order came to is not negative.
select
    order_id,
    sum(amount) as total_amount
from {{ ref('stg_payments') }}
group by 1
having not(sum(amount) >= 0)
