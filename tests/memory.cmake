# The tests under AddressSanitizer: core, variants, tasks and what trains, measures, checks and verifies them. To compile plans, tables,
# comparisons and the command line under it, and to run their tests, takes as long again. So preset dev leaves them to dev-all, which
# runs every test. What is less: in that code containers check their indices in every build (attn_library's COLD), which finds no use
# after free; scripts/fuzz runs its readers under both sanitizers.
string(JOIN "|" plain_code "/harness/(cli|compare|crossing|growth|plan|plugin|process|run|store|tables)/" /tests/fuzz/
  /harness/includes_test /conformance/guide_test /made/ /guide/ /variants/api/recurrent_forms_test)
list(FILTER float_tests EXCLUDE REGEX "${plain_code}")
list(FILTER both_tests EXCLUDE REGEX "${plain_code}")
# Left out too, since they take minutes under AddressSanitizer: planted faults (their code is the tests' own),
# simulations, and tests that score or count thousands of examples in code that other tests reach too.
set(apart
  conformance/broken_tasks conformance/broken_tasks_test conformance/broken_test conformance/broken_variants
  conformance/planted_at_edges conformance/planted_bfloat16_test conformance/planted_blocks_test conformance/planted_caches_test
  conformance/planted_carried_test conformance/planted_eviction_test conformance/planted_gates conformance/planted_passes
  conformance/planted_packed_test conformance/planted_softmax conformance/planted_variants conformance/textbook_decoder
  harness/train/steady_step_test) # watches the allocator that a sanitizer replaces
attn_test_sources(apart .cc)
list(REMOVE_ITEM float_tests ${apart})
list(REMOVE_ITEM both_tests ${apart})
string(JOIN ":" counting
  *EveryTask* *TaskConformance*_shortcuts *TaskConformance*_splits *TaskConformance*_balance *Simulation*
  *TheDialGoesFrom* *LateFaults* BigBird.AsLraDrawsFromTheFirst1024Positions LadderKinds.ALabelOfAVectorIsReadThereOrAround
  Ladder.TwoDocumentsAreComparedByWhatTheyShare Ladder.TheBestWindowIsFoundWhereverItStands
  Ladder.PooledWindowsSeeTheOrderWithinSixteenTokens Ladder.LengthIsARungOnlyWhereItVaries
  Workload.DecodesWhatTheCausalForwardSaysOfTheLastRow Workload.TrainFlopsOfEveryVariantAreWhatTheKernelsCount
  Frames.AFrameAloneCannotTellTheConsonants Listops.RootOperatorBeatsTheMajorityClass
  Parity.AThresholdIsTheBestShortcut Pathfinder.CheapPredictorsStayNearChance
  LadderKinds.SequencesOfVectorsHaveABagAndAWindow Image.ALinearClassifierIsAWeakShortcut
  Majority.TheFirstBitTellsLittleAndTheBagAll Sides/SceneLevels* Tasks/Golden*
  Derive.* Attention.DeclaredCostIsMeasuredCost SharedKeys.TheDeclaredCostIsThatOfThePass SharedKeys.ADecodeStepAnswersAsTheCausalForward
  BFloat16Workload.DeclaredBytesAreTheMeasuredOnes Breakdown.ThePartsOfEveryVariantAddUpToItsPasses
  Fox.RowsOfALongSequenceAreAsInDouble Verify.DifferencesAcrossManyKinksRefuseNoRightGradient Verify.RefusesWhatStandsInALayer
  GateProjections.AreTrained Statistics.IntervalsOfVisitsCoverAsOftenAsTheySay RatioInterval.HoldsTheTruth
  Stopping.IntervalsThatEndVisitsCoverAsOftenAsTheySay
  # Contract checks that call what others call, and compare numbers alone.
  *Conformance*_causality *Conformance*_convexity *Conformance*_determinism *Conformance*_flops *Conformance*_limit
  *Conformance*_linearity *Conformance*_memory *Conformance*_permutation
  # What other tests here call at more shapes: mixers inside blocks, and every variant by the workload that it is measured with.
  *BlockConformance*_reference Workload.RunsEveryVariantAtEveryScopeInBothModes)
