"""Programs of comparisons: scale rules, mechanisms and weightings."""
