select
  key,
  no_such_column
from {{ ref('changelog') }}
