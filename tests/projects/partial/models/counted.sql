{{ config(materialized='table') }} select count(*) as n from {{ ref('changelog') }}
