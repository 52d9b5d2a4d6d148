module example.test/fetcher

go 1.27
