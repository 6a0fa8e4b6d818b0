# The tests that preset dev leaves out, since they take minutes under AddressSanitizer: planted faults (their code is the tests' own),
# simulations, and tests that score or count thousands of examples in code that other tests reach too. Preset dev-all runs them.
set(apart
  conformance/broken_tasks conformance/broken_tasks_test conformance/broken_test conformance/broken_variants
  conformance/planted_at_edges conformance/planted_bfloat16_test conformance/planted_blocks_test conformance/planted_caches_test
  conformance/planted_carried_test conformance/planted_eviction_test conformance/planted_gates conformance/planted_passes
  conformance/planted_packed_test conformance/planted_softmax conformance/planted_variants conformance/textbook_decoder
  harness/compare/simulations_test harness/crossing/search_simulation_test
  harness/train/steady_step_test) # watches the allocator that a sanitizer replaces
attn_test_sources(apart .cc)
list(REMOVE_ITEM float_tests ${apart})
list(REMOVE_ITEM both_tests ${apart})
string(JOIN ":" counting
  *EveryTask* *TaskConformance*_shortcuts *TaskConformance*_splits *TaskConformance*_balance *Simulation*
  *TheDialGoesFrom* *LateFaults* BigBird.AsLraDrawsFromTheFirst1024Positions LadderKinds.ALabelOfAVectorIsReadThereOrAround
  Ladder.TwoDocumentsAreComparedByWhatTheyShare Ladder.TheBestWindowIsFoundWhereverItStands
  Ladder.PooledWindowsSeeTheOrderWithinSixteenTokens Workload.DecodesWhatTheCausalForwardSaysOfTheLastRow
  Frames.AFrameAloneCannotTellTheConsonants Listops.RootOperatorBeatsTheMajorityClass
  Parity.AThresholdIsTheBestShortcut Pathfinder.CheapPredictorsStayNearChance
  Statistics.IntervalsOfVisitsCoverAsOftenAsTheySay RatioInterval.HoldsTheTruth Stopping.IntervalsThatEndVisitsCoverAsOftenAsTheySay
  Precision.VisitsEachCellAsOftenAsItNeeds LadderKinds.SequencesOfVectorsHaveABagAndAWindow
  Image.ALinearClassifierIsAWeakShortcut Majority.TheFirstBitTellsLittleAndTheBagAll Sides/SceneLevels*
  Derive.IsExactForAVariantThatDeclaresNone Attention.DeclaredCostIsMeasuredCost Tasks/Golden*
  Fox.RowsOfALongSequenceAreAsInDouble SharedKeys.ADecodeStepAnswersAsTheCausalForward BFloat16Workload.DeclaredBytesAreTheMeasuredOnes
  *VariantConformance*oracle_rank_flops *VariantConformance*oracle_rank_memory
  Breakdown.ThePartsOfEveryVariantAddUpToItsPasses Workload.TrainFlopsOfEveryVariantAreWhatTheKernelsCount
  PowerLaw.IntervalsHoldTheTruthAsOftenAsTheySay Verify.DifferencesAcrossManyKinksRefuseNoRightGradient)
