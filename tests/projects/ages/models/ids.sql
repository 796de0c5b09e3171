select sum(id) as ids from {{ source('crm', 'new') }}
