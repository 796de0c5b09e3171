select after['id'] as id, after['parent'] as parent from {{ ref('changelog') }}
