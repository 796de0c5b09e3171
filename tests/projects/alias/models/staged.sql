{{ config(alias='v_staged') }} select id, name from {{ ref('countries') }}
