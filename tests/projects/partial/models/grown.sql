{{ config(materialized='incremental') }} select after['id'] as id from {{ new_rows('changelog') }}
