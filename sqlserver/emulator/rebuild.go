package emulator

// StopRebuild has the next resumable ALTER INDEX REBUILD of an index, or its next
// RESUME, stop at a percentage with error 3643, as one does whose MAX_DURATION is
// over: sys.index_resumable_operations shows it as PAUSED, and other DDL on the
// table is 10637 until it is resumed or aborted. table is schema.name. Without it
// every rebuild is done at once. It outlives Restart.
func (s *Server) StopRebuild(table, index string, percent float64) {
	s.engine.StopRebuild(table, index, percent)
}
