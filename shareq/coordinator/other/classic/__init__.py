"""Groups of the classic protocol: members join, one of them assigns for all, the coordinator hands it round."""
