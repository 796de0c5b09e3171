{{ config(materialized='table') }} select n from {{ ref('seen') }}
