select * from {{ ref('fragile') }}
