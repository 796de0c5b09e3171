{{ config(materialized='incremental', alias='seen_orders', post_hook='select count(*) from {{ this }}') }}
select after['id'] as id from {{ new_rows('shifted') }}
{% if is_incremental() %} where not exists (select 1 from {{ this }} as own where own.id = after['id']) {% endif %}
