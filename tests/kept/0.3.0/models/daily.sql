{{ config(materialized='incremental') }}
select table_name, op, count(*) as changes from {{ new_rows('changelog') }} group by all
