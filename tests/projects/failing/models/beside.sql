{{ config(materialized='table') }} select count(*) as n from {{ ref('cut_to_changelog') }}
