
.PHONY: longhaul-envtest
longhaul-envtest: $(LONGHAUL) ## Run the tests in a bad network.
	$(LONGHAUL) envtest --chaos 1 --repeat 5 -- $(MAKE) test
