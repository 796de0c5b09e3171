{{ config(materialized='table') }} select count(*) as n from {{ source('orders') }}
