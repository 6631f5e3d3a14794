//! The named error codes. Generated from `codes.csv` by `cargo xtask codes`; edit the table, not this file.

use crate::{ErrorClass, ErrorCode};

/// Number, name and classes of every named code, by rising number.
#[rustfmt::skip]
pub(crate) static NAMES: &[(i32, &str, &[ErrorClass])] = &[
    (1, "InternalError", &[]),
    (2, "BadValue", &[]),
    (4, "NoSuchKey", &[]),
    (5, "GraphContainsCycle", &[]),
    (6, "HostUnreachable", &[ErrorClass::NetworkError, ErrorClass::RetriableError]),
    (7, "HostNotFound", &[ErrorClass::NetworkError, ErrorClass::RetriableError]),
    (8, "UnknownError", &[]),
    (9, "FailedToParse", &[]),
    (10, "CannotMutateObject", &[]),
    (11, "UserNotFound", &[]),
    (12, "UnsupportedFormat", &[]),
    (13, "Unauthorized", &[]),
    (14, "TypeMismatch", &[]),
    (15, "Overflow", &[ErrorClass::ValidationError]),
    (16, "InvalidLength", &[]),
    (17, "ProtocolError", &[]),
    (18, "AuthenticationFailed", &[]),
    (19, "CannotReuseObject", &[]),
    (20, "IllegalOperation", &[]),
    (21, "EmptyArrayOperation", &[]),
    (22, "InvalidBSON", &[ErrorClass::ValidationError]),
    (23, "AlreadyInitialized", &[]),
    (24, "LockTimeout", &[ErrorClass::Interruption]),
    (25, "RemoteValidationError", &[]),
    (26, "NamespaceNotFound", &[]),
    (27, "IndexNotFound", &[]),
    (28, "PathNotViable", &[]),
    (29, "NonExistentPath", &[]),
    (30, "InvalidPath", &[]),
    (31, "RoleNotFound", &[]),
    (32, "RolesNotRelated", &[]),
    (33, "PrivilegeNotFound", &[]),
    (34, "CannotBackfillArray", &[]),
    (35, "UserModificationFailed", &[]),
    (36, "RemoteChangeDetected", &[]),
    (37, "FileRenameFailed", &[]),
    (38, "FileNotOpen", &[]),
    (39, "FileStreamFailed", &[]),
    (40, "ConflictingUpdateOperators", &[]),
    (41, "FileAlreadyOpen", &[]),
    (42, "LogWriteFailed", &[]),
    (43, "CursorNotFound", &[ErrorClass::CursorInvalidatedError]),
    (45, "UserDataInconsistent", &[]),
    (46, "LockBusy", &[]),
    (47, "NoMatchingDocument", &[]),
    (48, "NamespaceExists", &[]),
    (49, "InvalidRoleModification", &[]),
    (50, "MaxTimeMSExpired", &[ErrorClass::Interruption, ErrorClass::ExceededTimeLimitError]),
    (51, "ManualInterventionRequired", &[]),
    (52, "DollarPrefixedFieldName", &[]),
    (53, "InvalidIdField", &[]),
    (54, "NotSingleValueField", &[]),
    (55, "InvalidDBRef", &[]),
    (56, "EmptyFieldName", &[]),
    (57, "DottedFieldName", &[]),
    (58, "RoleModificationFailed", &[]),
    (59, "CommandNotFound", &[]),
    (61, "ShardKeyNotFound", &[]),
    (62, "OplogOperationUnsupported", &[]),
    (64, "WriteConcernTimeout", &[ErrorClass::WriteConcernError]),
    (65, "MultipleErrorsOccurred", &[]),
    (66, "ImmutableField", &[]),
    (67, "CannotCreateIndex", &[]),
    (68, "IndexAlreadyExists", &[]),
    (69, "AuthSchemaIncompatible", &[]),
    (70, "ShardNotFound", &[]),
    (71, "ReplicaSetNotFound", &[]),
    (72, "InvalidOptions", &[]),
    (73, "InvalidNamespace", &[]),
    (74, "NodeNotFound", &[]),
    (75, "WriteConcernLegacyOK", &[ErrorClass::WriteConcernError]),
    (76, "NoReplicationEnabled", &[]),
    (77, "OperationIncomplete", &[]),
    (78, "CommandResultSchemaViolation", &[]),
    (79, "UnknownReplWriteConcern", &[ErrorClass::WriteConcernError]),
    (80, "RoleDataInconsistent", &[]),
    (81, "NoMatchParseContext", &[]),
    (82, "NoProgressMade", &[]),
    (83, "RemoteResultsUnavailable", &[]),
    (85, "IndexOptionsConflict", &[]),
    (86, "IndexKeySpecsConflict", &[]),
    (87, "CannotSplit", &[]),
    (89, "NetworkTimeout", &[ErrorClass::NetworkError, ErrorClass::RetriableError]),
    (90, "CallbackCanceled", &[]),
    (91, "ShutdownInProgress", &[ErrorClass::ShutdownError, ErrorClass::RetriableError]),
    (92, "SecondaryAheadOfPrimary", &[]),
    (93, "InvalidReplicaSetConfig", &[]),
    (94, "NotYetInitialized", &[]),
    (95, "NotSecondary", &[]),
    (96, "OperationFailed", &[ErrorClass::CursorInvalidatedError]),
    (97, "NoProjectionFound", &[]),
    (98, "DBPathInUse", &[]),
    (100, "UnsatisfiableWriteConcern", &[ErrorClass::WriteConcernError]),
    (101, "OutdatedClient", &[]),
    (102, "IncompatibleAuditMetadata", &[]),
    (103, "NewReplicaSetConfigurationIncompatible", &[]),
    (104, "NodeNotElectable", &[]),
    (105, "IncompatibleShardingMetadata", &[]),
    (106, "DistributedClockSkewed", &[]),
    (107, "LockFailed", &[]),
    (108, "InconsistentReplicaSetNames", &[]),
    (109, "ConfigurationInProgress", &[]),
    (110, "CannotInitializeNodeWithData", &[]),
    (111, "NotExactValueField", &[]),
    (112, "WriteConflict", &[]),
    (113, "InitialSyncFailure", &[]),
    (114, "InitialSyncOplogSourceMissing", &[]),
    (115, "CommandNotSupported", &[]),
    (116, "DocTooLargeForCapped", &[]),
    (117, "ConflictingOperationInProgress", &[]),
    (118, "NamespaceNotSharded", &[]),
    (119, "InvalidSyncSource", &[]),
    (120, "OplogStartMissing", &[]),
    (121, "DocumentValidationFailure", &[]),
    (123, "NotAReplicaSet", &[]),
    (124, "IncompatibleElectionProtocol", &[]),
    (125, "CommandFailed", &[]),
    (126, "RPCProtocolNegotiationFailed", &[]),
    (127, "UnrecoverableRollbackError", &[]),
    (128, "LockNotFound", &[]),
    (129, "LockStateChangeFailed", &[]),
    (130, "SymbolNotFound", &[]),
    (133, "FailedToSatisfyReadPreference", &[]),
    (134, "ReadConcernMajorityNotAvailableYet", &[ErrorClass::RetriableError]),
    (135, "StaleTerm", &[]),
    (136, "CappedPositionLost", &[]),
    (137, "IncompatibleShardingConfigVersion", &[]),
    (138, "RemoteOplogStale", &[]),
    (139, "JSInterpreterFailure", &[]),
    (140, "InvalidSSLConfiguration", &[]),
    (141, "SSLHandshakeFailed", &[]),
    (142, "JSUncatchableError", &[]),
    (143, "CursorInUse", &[]),
    (144, "IncompatibleCatalogManager", &[]),
    (145, "PooledConnectionsDropped", &[]),
    (146, "ExceededMemoryLimit", &[]),
    (147, "ZLibError", &[]),
    (148, "ReadConcernMajorityNotEnabled", &[]),
    (149, "NoConfigPrimary", &[]),
    (150, "StaleEpoch", &[]),
    (151, "OperationCannotBeBatched", &[]),
    (152, "OplogOutOfOrder", &[]),
    (153, "ChunkTooBig", &[]),
    (154, "InconsistentShardIdentity", &[]),
    (155, "CannotApplyOplogWhilePrimary", &[]),
    (157, "CanRepairToDowngrade", &[]),
    (158, "MustUpgrade", &[]),
    (159, "DurationOverflow", &[]),
    (160, "MaxStalenessOutOfRange", &[]),
    (161, "IncompatibleCollationVersion", &[]),
    (162, "CollectionIsEmpty", &[]),
    (163, "ZoneStillInUse", &[]),
    (164, "InitialSyncActive", &[]),
    (165, "ViewDepthLimitExceeded", &[]),
    (166, "CommandNotSupportedOnView", &[]),
    (167, "OptionNotSupportedOnView", &[]),
    (168, "InvalidPipelineOperator", &[]),
    (169, "CommandOnShardedViewNotSupportedOnMongod", &[]),
    (170, "TooManyMatchingDocuments", &[]),
    (171, "CannotIndexParallelArrays", &[]),
    (172, "TransportSessionClosed", &[]),
    (173, "TransportSessionNotFound", &[]),
    (174, "TransportSessionUnknown", &[]),
    (175, "QueryPlanKilled", &[ErrorClass::CursorInvalidatedError]),
    (176, "FileOpenFailed", &[]),
    (177, "ZoneNotFound", &[]),
    (178, "RangeOverlapConflict", &[]),
    (179, "WindowsPdhError", &[]),
    (180, "BadPerfCounterPath", &[]),
    (181, "AmbiguousIndexKeyPattern", &[]),
    (182, "InvalidViewDefinition", &[]),
    (183, "ClientMetadataMissingField", &[]),
    (184, "ClientMetadataAppNameTooLarge", &[]),
    (185, "ClientMetadataDocumentTooLarge", &[]),
    (186, "ClientMetadataCannotBeMutated", &[]),
    (187, "LinearizableReadConcernError", &[]),
    (188, "IncompatibleServerVersion", &[]),
    (189, "PrimarySteppedDown", &[ErrorClass::NotPrimaryError, ErrorClass::RetriableError]),
    (190, "MasterSlaveConnectionFailure", &[]),
    (192, "FailPointEnabled", &[]),
    (194, "BalancerInterrupted", &[]),
    (195, "ViewPipelineMaxSizeExceeded", &[]),
    (197, "InvalidIndexSpecificationOption", &[]),
    (199, "ReplicaSetMonitorRemoved", &[]),
    (200, "ChunkRangeCleanupPending", &[]),
    (201, "CannotBuildIndexKeys", &[]),
    (202, "NetworkInterfaceExceededTimeLimit", &[ErrorClass::ExceededTimeLimitError]),
    (203, "ShardingStateNotInitialized", &[]),
    (204, "TimeProofMismatch", &[]),
    (205, "ClusterTimeFailsRateLimiter", &[]),
    (206, "NoSuchSession", &[]),
    (207, "InvalidUUID", &[]),
    (208, "TooManyLocks", &[]),
    (209, "StaleClusterTime", &[]),
    (210, "CannotVerifyAndSignLogicalTime", &[]),
    (211, "KeyNotFound", &[]),
    (212, "IncompatibleRollbackAlgorithm", &[]),
    (213, "DuplicateSession", &[]),
    (214, "AuthenticationRestrictionUnmet", &[]),
    (215, "DatabaseDropPending", &[]),
    (216, "ElectionInProgress", &[]),
    (217, "IncompleteTransactionHistory", &[]),
    (218, "UpdateOperationFailed", &[]),
    (219, "FTDCPathNotSet", &[]),
    (220, "FTDCPathAlreadySet", &[]),
    (221, "IndexModified", &[]),
    (222, "CloseChangeStream", &[]),
    (223, "IllegalOpMsgFlag", &[]),
    (224, "QueryFeatureNotAllowed", &[]),
    (225, "TransactionTooOld", &[]),
    (226, "AtomicityFailure", &[]),
    (227, "CannotImplicitlyCreateCollection", &[]),
    (228, "SessionTransferIncomplete", &[]),
    (229, "MustDowngrade", &[]),
    (230, "DNSHostNotFound", &[]),
    (231, "DNSProtocolError", &[]),
    (232, "MaxSubPipelineDepthExceeded", &[]),
    (233, "TooManyDocumentSequences", &[]),
    (234, "RetryChangeStream", &[]),
    (235, "InternalErrorNotSupported", &[]),
    (237, "CursorKilled", &[ErrorClass::Interruption, ErrorClass::CursorInvalidatedError]),
    (238, "NotImplemented", &[]),
    (239, "SnapshotTooOld", &[]),
    (240, "DNSRecordTypeMismatch", &[]),
    (241, "ConversionFailure", &[]),
    (242, "CannotCreateCollection", &[]),
    (243, "IncompatibleWithUpgradedServer", &[]),
    (245, "BrokenPromise", &[]),
    (246, "SnapshotUnavailable", &[]),
    (247, "ProducerConsumerQueueBatchTooLarge", &[]),
    (248, "ProducerConsumerQueueEndClosed", &[]),
    (249, "StaleDbVersion", &[]),
    (250, "StaleChunkHistory", &[]),
    (251, "NoSuchTransaction", &[]),
    (252, "ReentrancyNotAllowed", &[]),
    (256, "TransactionCommitted", &[]),
    (257, "TransactionTooLarge", &[]),
    (258, "UnknownFeatureCompatibilityVersion", &[]),
    (259, "KeyedExecutorRetry", &[]),
    (260, "InvalidResumeToken", &[]),
    (261, "TooManyLogicalSessions", &[]),
    (262, "ExceededTimeLimit", &[ErrorClass::Interruption, ErrorClass::ExceededTimeLimitError, ErrorClass::RetriableError]),
    (263, "OperationNotSupportedInTransaction", &[]),
    (264, "TooManyFilesOpen", &[]),
    (265, "OrphanedRangeCleanUpFailed", &[]),
    (266, "FailPointSetFailed", &[]),
    (267, "PreparedTransactionInProgress", &[]),
    (268, "CannotBackup", &[]),
    (269, "DataModifiedByRepair", &[]),
    (270, "RepairedReplicaSetNode", &[]),
    (271, "JSInterpreterFailureWithStack", &[]),
    (272, "MigrationConflict", &[]),
    (273, "ProducerConsumerQueueProducerQueueDepthExceeded", &[]),
    (274, "ProducerConsumerQueueConsumed", &[]),
    (275, "ExchangePassthrough", &[]),
    (276, "IndexBuildAborted", &[]),
    (277, "AlarmAlreadyFulfilled", &[]),
    (278, "UnsatisfiableCommitQuorum", &[]),
    (279, "ClientDisconnect", &[ErrorClass::Interruption]),
    (280, "ChangeStreamFatalError", &[]),
    (281, "TransactionCoordinatorSteppingDown", &[ErrorClass::Interruption]),
    (282, "TransactionCoordinatorReachedAbortDecision", &[ErrorClass::Interruption]),
    (283, "WouldChangeOwningShard", &[]),
    (285, "IndexBuildAlreadyInProgress", &[]),
    (286, "ChangeStreamHistoryLost", &[]),
    (288, "ChecksumMismatch", &[]),
    (290, "TransactionExceededLifetimeLimitSeconds", &[ErrorClass::Interruption, ErrorClass::ExceededTimeLimitError]),
    (291, "NoQueryExecutionPlans", &[]),
    (292, "QueryExceededMemoryLimitNoDiskUseAllowed", &[]),
    (293, "InvalidSeedList", &[]),
    (294, "InvalidTopologyType", &[]),
    (295, "InvalidHeartBeatFrequency", &[]),
    (296, "TopologySetNameRequired", &[]),
    (297, "HierarchicalAcquisitionLevelViolation", &[]),
    (298, "InvalidServerType", &[]),
    (299, "OCSPCertificateStatusRevoked", &[]),
    (300, "RangeDeletionAbandonedBecauseCollectionWithUUIDDoesNotExist", &[]),
    (301, "DataCorruptionDetected", &[]),
    (302, "OCSPCertificateStatusUnknown", &[]),
    (303, "SplitHorizonChange", &[]),
    (307, "RangeDeletionAbandonedBecauseTaskDocumentDoesNotExist", &[]),
    (308, "CurrentConfigNotCommittedYet", &[]),
    (309, "ExhaustCommandFinished", &[]),
    (310, "PeriodicJobIsStopped", &[]),
    (313, "ResumableRangeDeleterDisabled", &[]),
    (314, "ObjectIsBusy", &[ErrorClass::CursorInvalidatedError]),
    (319, "MovePrimaryInProgress", &[]),
    (322, "APIVersionError", &[]),
    (323, "APIStrictError", &[]),
    (324, "APIDeprecationError", &[]),
    (326, "OplogQueryMinTsMissing", &[]),
    (330, "SkipCommandExecution", &[]),
    (331, "FailedToRunWithReplyBuilder", &[]),
    (332, "CannotDowngrade", &[]),
    (334, "MechanismUnavailable", &[]),
    (338, "ReshardCollectionInProgress", &[]),
    (339, "NoSuchReshardCollection", &[]),
    (340, "ReshardCollectionCommitted", &[]),
    (341, "ReshardCollectionAborted", &[]),
    (342, "ReshardingCriticalSectionTimeout", &[]),
    (344, "AuditingNotEnabled", &[]),
    (345, "RuntimeAuditConfigurationNotEnabled", &[]),
    (346, "ChangeStreamInvalidated", &[]),
    (347, "APIMismatchError", &[]),
    (348, "ChangeStreamTopologyChange", &[]),
    (349, "KeyPatternShorterThanBound", &[]),
    (350, "ReshardCollectionTruncatedError", &[]),
    (351, "ChangeStreamStartAfterInvalidate", &[]),
    (352, "UnsupportedOpQueryCommand", &[]),
    (354, "LoadBalancerSupportMismatch", &[]),
    (355, "InterruptedDueToStorageChange", &[ErrorClass::Interruption]),
    (356, "TxnRetryCounterTooOld", &[]),
    (357, "InvalidBSONType", &[]),
    (358, "InternalTransactionNotSupported", &[ErrorClass::RetriableError]),
    (359, "CannotConvertIndexToUnique", &[]),
    (361, "CollectionUUIDMismatch", &[]),
    (362, "FutureAlreadyRetrieved", &[]),
    (363, "RetryableTransactionInProgress", &[]),
    (365, "TemporarilyUnavailable", &[]),
    (366, "WouldChangeOwningShardDeletedNoDocument", &[]),
    (369, "FLETransactionAbort", &[]),
    (370, "CannotDropShardKeyIndex", &[]),
    (371, "UserWritesBlocked", &[]),
    (373, "InternalTransactionsExhaustiveFindHasMore", &[]),
    (376, "ChangeStreamNotEnabled", &[]),
    (377, "FLEMaxTagLimitExceeded", &[]),
    (378, "NonConformantBSON", &[ErrorClass::ValidationError]),
    (380, "RequestAlreadyFulfilled", &[]),
    (383, "CollectionIsEmptyLocally", &[]),
    (385, "ConflictingServerlessOperation", &[]),
    (386, "DuplicateKeyId", &[]),
    (388, "TransactionTooLargeForCache", &[]),
    (389, "LibmongocryptError", &[]),
    (390, "InvalidSignature", &[]),
    (391, "ReauthenticationRequired", &[]),
    (392, "InvalidJWT", &[]),
    (393, "InvalidTenantId", &[]),
    (395, "TruncatedSerialization", &[]),
    (396, "IndexInformationTooLarge", &[]),
    (398, "StreamTerminated", &[]),
    (400, "CannotUpgrade", &[]),
    (402, "ResourceExhausted", &[ErrorClass::RetriableError]),
    (404, "LDAPRoleAcquisitionError", &[]),
    (405, "CannotCreateChunkDistribution", &[]),
    (408, "CannotInsertTimeseriesBucketsWithMixedSchema", &[]),
    (409, "TimeseriesBucketCompressionFailed", &[]),
    (411, "QueryRejectedBySettings", &[]),
    (412, "UpdatesStillPending", &[ErrorClass::RetriableError]),
    (426, "IndexIsEmpty", &[]),
    (430, "IndexKeyOrderViolation", &[]),
    (432, "OfflineValidationFailedToComplete", &[]),
    (433, "AdmissionQueueOverflow", &[]),
    (434, "NoDistinctScansForDistinctEligibleQuery", &[]),
    (442, "RetryMultiPlanning", &[]),
    (449, "RateLimitExceeded", &[]),
    (462, "IngressRequestRateLimitExceeded", &[ErrorClass::RetriableError]),
    (9001, "SocketException", &[ErrorClass::NetworkError, ErrorClass::RetriableError]),
    (10003, "CannotGrowDocumentInCappedNamespace", &[]),
    (10058, "LegacyNotPrimary", &[]),
    (10107, "NotWritablePrimary", &[ErrorClass::NotPrimaryError, ErrorClass::RetriableError]),
    (10334, "BSONObjectTooLarge", &[]),
    (11000, "DuplicateKey", &[]),
    (11600, "InterruptedAtShutdown", &[ErrorClass::Interruption, ErrorClass::ShutdownError, ErrorClass::RetriableError]),
    (11601, "Interrupted", &[ErrorClass::Interruption]),
    (11602, "InterruptedDueToReplStateChange", &[ErrorClass::Interruption, ErrorClass::NotPrimaryError, ErrorClass::RetriableError]),
    (12586, "BackgroundOperationInProgressForDatabase", &[]),
    (12587, "BackgroundOperationInProgressForNamespace", &[]),
    (13113, "MergeStageNoMatchingDocument", &[]),
    (13297, "DatabaseDifferCase", &[]),
    (13388, "StaleConfig", &[]),
    (13435, "NotPrimaryNoSecondaryOk", &[ErrorClass::NotPrimaryError, ErrorClass::RetriableError]),
    (13436, "NotPrimaryOrSecondary", &[ErrorClass::NotPrimaryError, ErrorClass::RetriableError]),
    (14031, "OutOfDiskSpace", &[]),
    (28769, "NamespaceCannotBeSharded", &[]),
    (31082, "SearchNotEnabled", &[]),
    (40413, "IDLDuplicateField", &[]),
    (40414, "IDLFailedToParse", &[]),
    (40415, "IDLUnknownField", &[]),
    (46841, "ClientMarkedKilled", &[ErrorClass::Interruption]),
    (50768, "NotARetryableWriteCommand", &[]),
];

#[allow(non_upper_case_globals)]
#[rustfmt::skip]
impl ErrorCode {
    /// InternalError (1).
    pub const InternalError: ErrorCode = ErrorCode(1);
    /// BadValue (2).
    pub const BadValue: ErrorCode = ErrorCode(2);
    /// NoSuchKey (4).
    pub const NoSuchKey: ErrorCode = ErrorCode(4);
    /// GraphContainsCycle (5).
    pub const GraphContainsCycle: ErrorCode = ErrorCode(5);
    /// HostUnreachable (6).
    pub const HostUnreachable: ErrorCode = ErrorCode(6);
    /// HostNotFound (7).
    pub const HostNotFound: ErrorCode = ErrorCode(7);
    /// UnknownError (8).
    pub const UnknownError: ErrorCode = ErrorCode(8);
    /// FailedToParse (9).
    pub const FailedToParse: ErrorCode = ErrorCode(9);
    /// CannotMutateObject (10).
    pub const CannotMutateObject: ErrorCode = ErrorCode(10);
    /// UserNotFound (11).
    pub const UserNotFound: ErrorCode = ErrorCode(11);
    /// UnsupportedFormat (12).
    pub const UnsupportedFormat: ErrorCode = ErrorCode(12);
    /// Unauthorized (13).
    pub const Unauthorized: ErrorCode = ErrorCode(13);
    /// TypeMismatch (14).
    pub const TypeMismatch: ErrorCode = ErrorCode(14);
    /// Overflow (15).
    pub const Overflow: ErrorCode = ErrorCode(15);
    /// InvalidLength (16).
    pub const InvalidLength: ErrorCode = ErrorCode(16);
    /// ProtocolError (17).
    pub const ProtocolError: ErrorCode = ErrorCode(17);
    /// AuthenticationFailed (18).
    pub const AuthenticationFailed: ErrorCode = ErrorCode(18);
    /// CannotReuseObject (19).
    pub const CannotReuseObject: ErrorCode = ErrorCode(19);
    /// IllegalOperation (20).
    pub const IllegalOperation: ErrorCode = ErrorCode(20);
    /// EmptyArrayOperation (21).
    pub const EmptyArrayOperation: ErrorCode = ErrorCode(21);
    /// InvalidBSON (22).
    pub const InvalidBSON: ErrorCode = ErrorCode(22);
    /// AlreadyInitialized (23).
    pub const AlreadyInitialized: ErrorCode = ErrorCode(23);
    /// LockTimeout (24).
    pub const LockTimeout: ErrorCode = ErrorCode(24);
    /// RemoteValidationError (25).
    pub const RemoteValidationError: ErrorCode = ErrorCode(25);
    /// NamespaceNotFound (26).
    pub const NamespaceNotFound: ErrorCode = ErrorCode(26);
    /// IndexNotFound (27).
    pub const IndexNotFound: ErrorCode = ErrorCode(27);
    /// PathNotViable (28).
    pub const PathNotViable: ErrorCode = ErrorCode(28);
    /// NonExistentPath (29).
    pub const NonExistentPath: ErrorCode = ErrorCode(29);
    /// InvalidPath (30).
    pub const InvalidPath: ErrorCode = ErrorCode(30);
    /// RoleNotFound (31).
    pub const RoleNotFound: ErrorCode = ErrorCode(31);
    /// RolesNotRelated (32).
    pub const RolesNotRelated: ErrorCode = ErrorCode(32);
    /// PrivilegeNotFound (33).
    pub const PrivilegeNotFound: ErrorCode = ErrorCode(33);
    /// CannotBackfillArray (34).
    pub const CannotBackfillArray: ErrorCode = ErrorCode(34);
    /// UserModificationFailed (35).
    pub const UserModificationFailed: ErrorCode = ErrorCode(35);
    /// RemoteChangeDetected (36).
    pub const RemoteChangeDetected: ErrorCode = ErrorCode(36);
    /// FileRenameFailed (37).
    pub const FileRenameFailed: ErrorCode = ErrorCode(37);
    /// FileNotOpen (38).
    pub const FileNotOpen: ErrorCode = ErrorCode(38);
    /// FileStreamFailed (39).
    pub const FileStreamFailed: ErrorCode = ErrorCode(39);
    /// ConflictingUpdateOperators (40).
    pub const ConflictingUpdateOperators: ErrorCode = ErrorCode(40);
    /// FileAlreadyOpen (41).
    pub const FileAlreadyOpen: ErrorCode = ErrorCode(41);
    /// LogWriteFailed (42).
    pub const LogWriteFailed: ErrorCode = ErrorCode(42);
    /// CursorNotFound (43).
    pub const CursorNotFound: ErrorCode = ErrorCode(43);
    /// UserDataInconsistent (45).
    pub const UserDataInconsistent: ErrorCode = ErrorCode(45);
    /// LockBusy (46).
    pub const LockBusy: ErrorCode = ErrorCode(46);
    /// NoMatchingDocument (47).
    pub const NoMatchingDocument: ErrorCode = ErrorCode(47);
    /// NamespaceExists (48).
    pub const NamespaceExists: ErrorCode = ErrorCode(48);
    /// InvalidRoleModification (49).
    pub const InvalidRoleModification: ErrorCode = ErrorCode(49);
    /// MaxTimeMSExpired (50).
    pub const MaxTimeMSExpired: ErrorCode = ErrorCode(50);
    /// ManualInterventionRequired (51).
    pub const ManualInterventionRequired: ErrorCode = ErrorCode(51);
    /// DollarPrefixedFieldName (52).
    pub const DollarPrefixedFieldName: ErrorCode = ErrorCode(52);
    /// InvalidIdField (53).
    pub const InvalidIdField: ErrorCode = ErrorCode(53);
    /// NotSingleValueField (54).
    pub const NotSingleValueField: ErrorCode = ErrorCode(54);
    /// InvalidDBRef (55).
    pub const InvalidDBRef: ErrorCode = ErrorCode(55);
    /// EmptyFieldName (56).
    pub const EmptyFieldName: ErrorCode = ErrorCode(56);
    /// DottedFieldName (57).
    pub const DottedFieldName: ErrorCode = ErrorCode(57);
    /// RoleModificationFailed (58).
    pub const RoleModificationFailed: ErrorCode = ErrorCode(58);
    /// CommandNotFound (59).
    pub const CommandNotFound: ErrorCode = ErrorCode(59);
    /// ShardKeyNotFound (61).
    pub const ShardKeyNotFound: ErrorCode = ErrorCode(61);
    /// OplogOperationUnsupported (62).
    pub const OplogOperationUnsupported: ErrorCode = ErrorCode(62);
    /// WriteConcernTimeout (64).
    pub const WriteConcernTimeout: ErrorCode = ErrorCode(64);
    /// MultipleErrorsOccurred (65).
    pub const MultipleErrorsOccurred: ErrorCode = ErrorCode(65);
    /// ImmutableField (66).
    pub const ImmutableField: ErrorCode = ErrorCode(66);
    /// CannotCreateIndex (67).
    pub const CannotCreateIndex: ErrorCode = ErrorCode(67);
    /// IndexAlreadyExists (68).
    pub const IndexAlreadyExists: ErrorCode = ErrorCode(68);
    /// AuthSchemaIncompatible (69).
    pub const AuthSchemaIncompatible: ErrorCode = ErrorCode(69);
    /// ShardNotFound (70).
    pub const ShardNotFound: ErrorCode = ErrorCode(70);
    /// ReplicaSetNotFound (71).
    pub const ReplicaSetNotFound: ErrorCode = ErrorCode(71);
    /// InvalidOptions (72).
    pub const InvalidOptions: ErrorCode = ErrorCode(72);
    /// InvalidNamespace (73).
    pub const InvalidNamespace: ErrorCode = ErrorCode(73);
    /// NodeNotFound (74).
    pub const NodeNotFound: ErrorCode = ErrorCode(74);
    /// WriteConcernLegacyOK (75).
    pub const WriteConcernLegacyOK: ErrorCode = ErrorCode(75);
    /// NoReplicationEnabled (76).
    pub const NoReplicationEnabled: ErrorCode = ErrorCode(76);
    /// OperationIncomplete (77).
    pub const OperationIncomplete: ErrorCode = ErrorCode(77);
    /// CommandResultSchemaViolation (78).
    pub const CommandResultSchemaViolation: ErrorCode = ErrorCode(78);
    /// UnknownReplWriteConcern (79).
    pub const UnknownReplWriteConcern: ErrorCode = ErrorCode(79);
    /// RoleDataInconsistent (80).
    pub const RoleDataInconsistent: ErrorCode = ErrorCode(80);
    /// NoMatchParseContext (81).
    pub const NoMatchParseContext: ErrorCode = ErrorCode(81);
    /// NoProgressMade (82).
    pub const NoProgressMade: ErrorCode = ErrorCode(82);
    /// RemoteResultsUnavailable (83).
    pub const RemoteResultsUnavailable: ErrorCode = ErrorCode(83);
    /// IndexOptionsConflict (85).
    pub const IndexOptionsConflict: ErrorCode = ErrorCode(85);
    /// IndexKeySpecsConflict (86).
    pub const IndexKeySpecsConflict: ErrorCode = ErrorCode(86);
    /// CannotSplit (87).
    pub const CannotSplit: ErrorCode = ErrorCode(87);
    /// NetworkTimeout (89).
    pub const NetworkTimeout: ErrorCode = ErrorCode(89);
    /// CallbackCanceled (90).
    pub const CallbackCanceled: ErrorCode = ErrorCode(90);
    /// ShutdownInProgress (91).
    pub const ShutdownInProgress: ErrorCode = ErrorCode(91);
    /// SecondaryAheadOfPrimary (92).
    pub const SecondaryAheadOfPrimary: ErrorCode = ErrorCode(92);
    /// InvalidReplicaSetConfig (93).
    pub const InvalidReplicaSetConfig: ErrorCode = ErrorCode(93);
    /// NotYetInitialized (94).
    pub const NotYetInitialized: ErrorCode = ErrorCode(94);
    /// NotSecondary (95).
    pub const NotSecondary: ErrorCode = ErrorCode(95);
    /// OperationFailed (96).
    pub const OperationFailed: ErrorCode = ErrorCode(96);
    /// NoProjectionFound (97).
    pub const NoProjectionFound: ErrorCode = ErrorCode(97);
    /// DBPathInUse (98).
    pub const DBPathInUse: ErrorCode = ErrorCode(98);
    /// UnsatisfiableWriteConcern (100).
    pub const UnsatisfiableWriteConcern: ErrorCode = ErrorCode(100);
    /// OutdatedClient (101).
    pub const OutdatedClient: ErrorCode = ErrorCode(101);
    /// IncompatibleAuditMetadata (102).
    pub const IncompatibleAuditMetadata: ErrorCode = ErrorCode(102);
    /// NewReplicaSetConfigurationIncompatible (103).
    pub const NewReplicaSetConfigurationIncompatible: ErrorCode = ErrorCode(103);
    /// NodeNotElectable (104).
    pub const NodeNotElectable: ErrorCode = ErrorCode(104);
    /// IncompatibleShardingMetadata (105).
    pub const IncompatibleShardingMetadata: ErrorCode = ErrorCode(105);
    /// DistributedClockSkewed (106).
    pub const DistributedClockSkewed: ErrorCode = ErrorCode(106);
    /// LockFailed (107).
    pub const LockFailed: ErrorCode = ErrorCode(107);
    /// InconsistentReplicaSetNames (108).
    pub const InconsistentReplicaSetNames: ErrorCode = ErrorCode(108);
    /// ConfigurationInProgress (109).
    pub const ConfigurationInProgress: ErrorCode = ErrorCode(109);
    /// CannotInitializeNodeWithData (110).
    pub const CannotInitializeNodeWithData: ErrorCode = ErrorCode(110);
    /// NotExactValueField (111).
    pub const NotExactValueField: ErrorCode = ErrorCode(111);
    /// WriteConflict (112).
    pub const WriteConflict: ErrorCode = ErrorCode(112);
    /// InitialSyncFailure (113).
    pub const InitialSyncFailure: ErrorCode = ErrorCode(113);
    /// InitialSyncOplogSourceMissing (114).
    pub const InitialSyncOplogSourceMissing: ErrorCode = ErrorCode(114);
    /// CommandNotSupported (115).
    pub const CommandNotSupported: ErrorCode = ErrorCode(115);
    /// DocTooLargeForCapped (116).
    pub const DocTooLargeForCapped: ErrorCode = ErrorCode(116);
    /// ConflictingOperationInProgress (117).
    pub const ConflictingOperationInProgress: ErrorCode = ErrorCode(117);
    /// NamespaceNotSharded (118).
    pub const NamespaceNotSharded: ErrorCode = ErrorCode(118);
    /// InvalidSyncSource (119).
    pub const InvalidSyncSource: ErrorCode = ErrorCode(119);
    /// OplogStartMissing (120).
    pub const OplogStartMissing: ErrorCode = ErrorCode(120);
    /// DocumentValidationFailure (121).
    pub const DocumentValidationFailure: ErrorCode = ErrorCode(121);
    /// NotAReplicaSet (123).
    pub const NotAReplicaSet: ErrorCode = ErrorCode(123);
    /// IncompatibleElectionProtocol (124).
    pub const IncompatibleElectionProtocol: ErrorCode = ErrorCode(124);
    /// CommandFailed (125).
    pub const CommandFailed: ErrorCode = ErrorCode(125);
    /// RPCProtocolNegotiationFailed (126).
    pub const RPCProtocolNegotiationFailed: ErrorCode = ErrorCode(126);
    /// UnrecoverableRollbackError (127).
    pub const UnrecoverableRollbackError: ErrorCode = ErrorCode(127);
    /// LockNotFound (128).
    pub const LockNotFound: ErrorCode = ErrorCode(128);
    /// LockStateChangeFailed (129).
    pub const LockStateChangeFailed: ErrorCode = ErrorCode(129);
    /// SymbolNotFound (130).
    pub const SymbolNotFound: ErrorCode = ErrorCode(130);
    /// FailedToSatisfyReadPreference (133).
    pub const FailedToSatisfyReadPreference: ErrorCode = ErrorCode(133);
    /// ReadConcernMajorityNotAvailableYet (134).
    pub const ReadConcernMajorityNotAvailableYet: ErrorCode = ErrorCode(134);
    /// StaleTerm (135).
    pub const StaleTerm: ErrorCode = ErrorCode(135);
    /// CappedPositionLost (136).
    pub const CappedPositionLost: ErrorCode = ErrorCode(136);
    /// IncompatibleShardingConfigVersion (137).
    pub const IncompatibleShardingConfigVersion: ErrorCode = ErrorCode(137);
    /// RemoteOplogStale (138).
    pub const RemoteOplogStale: ErrorCode = ErrorCode(138);
    /// JSInterpreterFailure (139).
    pub const JSInterpreterFailure: ErrorCode = ErrorCode(139);
    /// InvalidSSLConfiguration (140).
    pub const InvalidSSLConfiguration: ErrorCode = ErrorCode(140);
    /// SSLHandshakeFailed (141).
    pub const SSLHandshakeFailed: ErrorCode = ErrorCode(141);
    /// JSUncatchableError (142).
    pub const JSUncatchableError: ErrorCode = ErrorCode(142);
    /// CursorInUse (143).
    pub const CursorInUse: ErrorCode = ErrorCode(143);
    /// IncompatibleCatalogManager (144).
    pub const IncompatibleCatalogManager: ErrorCode = ErrorCode(144);
    /// PooledConnectionsDropped (145).
    pub const PooledConnectionsDropped: ErrorCode = ErrorCode(145);
    /// ExceededMemoryLimit (146).
    pub const ExceededMemoryLimit: ErrorCode = ErrorCode(146);
    /// ZLibError (147).
    pub const ZLibError: ErrorCode = ErrorCode(147);
    /// ReadConcernMajorityNotEnabled (148).
    pub const ReadConcernMajorityNotEnabled: ErrorCode = ErrorCode(148);
    /// NoConfigPrimary (149).
    pub const NoConfigPrimary: ErrorCode = ErrorCode(149);
    /// StaleEpoch (150).
    pub const StaleEpoch: ErrorCode = ErrorCode(150);
    /// OperationCannotBeBatched (151).
    pub const OperationCannotBeBatched: ErrorCode = ErrorCode(151);
    /// OplogOutOfOrder (152).
    pub const OplogOutOfOrder: ErrorCode = ErrorCode(152);
    /// ChunkTooBig (153).
    pub const ChunkTooBig: ErrorCode = ErrorCode(153);
    /// InconsistentShardIdentity (154).
    pub const InconsistentShardIdentity: ErrorCode = ErrorCode(154);
    /// CannotApplyOplogWhilePrimary (155).
    pub const CannotApplyOplogWhilePrimary: ErrorCode = ErrorCode(155);
    /// CanRepairToDowngrade (157).
    pub const CanRepairToDowngrade: ErrorCode = ErrorCode(157);
    /// MustUpgrade (158).
    pub const MustUpgrade: ErrorCode = ErrorCode(158);
    /// DurationOverflow (159).
    pub const DurationOverflow: ErrorCode = ErrorCode(159);
    /// MaxStalenessOutOfRange (160).
    pub const MaxStalenessOutOfRange: ErrorCode = ErrorCode(160);
    /// IncompatibleCollationVersion (161).
    pub const IncompatibleCollationVersion: ErrorCode = ErrorCode(161);
    /// CollectionIsEmpty (162).
    pub const CollectionIsEmpty: ErrorCode = ErrorCode(162);
    /// ZoneStillInUse (163).
    pub const ZoneStillInUse: ErrorCode = ErrorCode(163);
    /// InitialSyncActive (164).
    pub const InitialSyncActive: ErrorCode = ErrorCode(164);
    /// ViewDepthLimitExceeded (165).
    pub const ViewDepthLimitExceeded: ErrorCode = ErrorCode(165);
    /// CommandNotSupportedOnView (166).
    pub const CommandNotSupportedOnView: ErrorCode = ErrorCode(166);
    /// OptionNotSupportedOnView (167).
    pub const OptionNotSupportedOnView: ErrorCode = ErrorCode(167);
    /// InvalidPipelineOperator (168).
    pub const InvalidPipelineOperator: ErrorCode = ErrorCode(168);
    /// CommandOnShardedViewNotSupportedOnMongod (169).
    pub const CommandOnShardedViewNotSupportedOnMongod: ErrorCode = ErrorCode(169);
    /// TooManyMatchingDocuments (170).
    pub const TooManyMatchingDocuments: ErrorCode = ErrorCode(170);
    /// CannotIndexParallelArrays (171).
    pub const CannotIndexParallelArrays: ErrorCode = ErrorCode(171);
    /// TransportSessionClosed (172).
    pub const TransportSessionClosed: ErrorCode = ErrorCode(172);
    /// TransportSessionNotFound (173).
    pub const TransportSessionNotFound: ErrorCode = ErrorCode(173);
    /// TransportSessionUnknown (174).
    pub const TransportSessionUnknown: ErrorCode = ErrorCode(174);
    /// QueryPlanKilled (175).
    pub const QueryPlanKilled: ErrorCode = ErrorCode(175);
    /// FileOpenFailed (176).
    pub const FileOpenFailed: ErrorCode = ErrorCode(176);
    /// ZoneNotFound (177).
    pub const ZoneNotFound: ErrorCode = ErrorCode(177);
    /// RangeOverlapConflict (178).
    pub const RangeOverlapConflict: ErrorCode = ErrorCode(178);
    /// WindowsPdhError (179).
    pub const WindowsPdhError: ErrorCode = ErrorCode(179);
    /// BadPerfCounterPath (180).
    pub const BadPerfCounterPath: ErrorCode = ErrorCode(180);
    /// AmbiguousIndexKeyPattern (181).
    pub const AmbiguousIndexKeyPattern: ErrorCode = ErrorCode(181);
    /// InvalidViewDefinition (182).
    pub const InvalidViewDefinition: ErrorCode = ErrorCode(182);
    /// ClientMetadataMissingField (183).
    pub const ClientMetadataMissingField: ErrorCode = ErrorCode(183);
    /// ClientMetadataAppNameTooLarge (184).
    pub const ClientMetadataAppNameTooLarge: ErrorCode = ErrorCode(184);
    /// ClientMetadataDocumentTooLarge (185).
    pub const ClientMetadataDocumentTooLarge: ErrorCode = ErrorCode(185);
    /// ClientMetadataCannotBeMutated (186).
    pub const ClientMetadataCannotBeMutated: ErrorCode = ErrorCode(186);
    /// LinearizableReadConcernError (187).
    pub const LinearizableReadConcernError: ErrorCode = ErrorCode(187);
    /// IncompatibleServerVersion (188).
    pub const IncompatibleServerVersion: ErrorCode = ErrorCode(188);
    /// PrimarySteppedDown (189).
    pub const PrimarySteppedDown: ErrorCode = ErrorCode(189);
    /// MasterSlaveConnectionFailure (190).
    pub const MasterSlaveConnectionFailure: ErrorCode = ErrorCode(190);
    /// FailPointEnabled (192).
    pub const FailPointEnabled: ErrorCode = ErrorCode(192);
    /// BalancerInterrupted (194).
    pub const BalancerInterrupted: ErrorCode = ErrorCode(194);
    /// ViewPipelineMaxSizeExceeded (195).
    pub const ViewPipelineMaxSizeExceeded: ErrorCode = ErrorCode(195);
    /// InvalidIndexSpecificationOption (197).
    pub const InvalidIndexSpecificationOption: ErrorCode = ErrorCode(197);
    /// ReplicaSetMonitorRemoved (199).
    pub const ReplicaSetMonitorRemoved: ErrorCode = ErrorCode(199);
    /// ChunkRangeCleanupPending (200).
    pub const ChunkRangeCleanupPending: ErrorCode = ErrorCode(200);
    /// CannotBuildIndexKeys (201).
    pub const CannotBuildIndexKeys: ErrorCode = ErrorCode(201);
    /// NetworkInterfaceExceededTimeLimit (202).
    pub const NetworkInterfaceExceededTimeLimit: ErrorCode = ErrorCode(202);
    /// ShardingStateNotInitialized (203).
    pub const ShardingStateNotInitialized: ErrorCode = ErrorCode(203);
    /// TimeProofMismatch (204).
    pub const TimeProofMismatch: ErrorCode = ErrorCode(204);
    /// ClusterTimeFailsRateLimiter (205).
    pub const ClusterTimeFailsRateLimiter: ErrorCode = ErrorCode(205);
    /// NoSuchSession (206).
    pub const NoSuchSession: ErrorCode = ErrorCode(206);
    /// InvalidUUID (207).
    pub const InvalidUUID: ErrorCode = ErrorCode(207);
    /// TooManyLocks (208).
    pub const TooManyLocks: ErrorCode = ErrorCode(208);
    /// StaleClusterTime (209).
    pub const StaleClusterTime: ErrorCode = ErrorCode(209);
    /// CannotVerifyAndSignLogicalTime (210).
    pub const CannotVerifyAndSignLogicalTime: ErrorCode = ErrorCode(210);
    /// KeyNotFound (211).
    pub const KeyNotFound: ErrorCode = ErrorCode(211);
    /// IncompatibleRollbackAlgorithm (212).
    pub const IncompatibleRollbackAlgorithm: ErrorCode = ErrorCode(212);
    /// DuplicateSession (213).
    pub const DuplicateSession: ErrorCode = ErrorCode(213);
    /// AuthenticationRestrictionUnmet (214).
    pub const AuthenticationRestrictionUnmet: ErrorCode = ErrorCode(214);
    /// DatabaseDropPending (215).
    pub const DatabaseDropPending: ErrorCode = ErrorCode(215);
    /// ElectionInProgress (216).
    pub const ElectionInProgress: ErrorCode = ErrorCode(216);
    /// IncompleteTransactionHistory (217).
    pub const IncompleteTransactionHistory: ErrorCode = ErrorCode(217);
    /// UpdateOperationFailed (218).
    pub const UpdateOperationFailed: ErrorCode = ErrorCode(218);
    /// FTDCPathNotSet (219).
    pub const FTDCPathNotSet: ErrorCode = ErrorCode(219);
    /// FTDCPathAlreadySet (220).
    pub const FTDCPathAlreadySet: ErrorCode = ErrorCode(220);
    /// IndexModified (221).
    pub const IndexModified: ErrorCode = ErrorCode(221);
    /// CloseChangeStream (222).
    pub const CloseChangeStream: ErrorCode = ErrorCode(222);
    /// IllegalOpMsgFlag (223).
    pub const IllegalOpMsgFlag: ErrorCode = ErrorCode(223);
    /// QueryFeatureNotAllowed (224).
    pub const QueryFeatureNotAllowed: ErrorCode = ErrorCode(224);
    /// TransactionTooOld (225).
    pub const TransactionTooOld: ErrorCode = ErrorCode(225);
    /// AtomicityFailure (226).
    pub const AtomicityFailure: ErrorCode = ErrorCode(226);
    /// CannotImplicitlyCreateCollection (227).
    pub const CannotImplicitlyCreateCollection: ErrorCode = ErrorCode(227);
    /// SessionTransferIncomplete (228).
    pub const SessionTransferIncomplete: ErrorCode = ErrorCode(228);
    /// MustDowngrade (229).
    pub const MustDowngrade: ErrorCode = ErrorCode(229);
    /// DNSHostNotFound (230).
    pub const DNSHostNotFound: ErrorCode = ErrorCode(230);
    /// DNSProtocolError (231).
    pub const DNSProtocolError: ErrorCode = ErrorCode(231);
    /// MaxSubPipelineDepthExceeded (232).
    pub const MaxSubPipelineDepthExceeded: ErrorCode = ErrorCode(232);
    /// TooManyDocumentSequences (233).
    pub const TooManyDocumentSequences: ErrorCode = ErrorCode(233);
    /// RetryChangeStream (234).
    pub const RetryChangeStream: ErrorCode = ErrorCode(234);
    /// InternalErrorNotSupported (235).
    pub const InternalErrorNotSupported: ErrorCode = ErrorCode(235);
    /// CursorKilled (237).
    pub const CursorKilled: ErrorCode = ErrorCode(237);
    /// NotImplemented (238).
    pub const NotImplemented: ErrorCode = ErrorCode(238);
    /// SnapshotTooOld (239).
    pub const SnapshotTooOld: ErrorCode = ErrorCode(239);
    /// DNSRecordTypeMismatch (240).
    pub const DNSRecordTypeMismatch: ErrorCode = ErrorCode(240);
    /// ConversionFailure (241).
    pub const ConversionFailure: ErrorCode = ErrorCode(241);
    /// CannotCreateCollection (242).
    pub const CannotCreateCollection: ErrorCode = ErrorCode(242);
    /// IncompatibleWithUpgradedServer (243).
    pub const IncompatibleWithUpgradedServer: ErrorCode = ErrorCode(243);
    /// BrokenPromise (245).
    pub const BrokenPromise: ErrorCode = ErrorCode(245);
    /// SnapshotUnavailable (246).
    pub const SnapshotUnavailable: ErrorCode = ErrorCode(246);
    /// ProducerConsumerQueueBatchTooLarge (247).
    pub const ProducerConsumerQueueBatchTooLarge: ErrorCode = ErrorCode(247);
    /// ProducerConsumerQueueEndClosed (248).
    pub const ProducerConsumerQueueEndClosed: ErrorCode = ErrorCode(248);
    /// StaleDbVersion (249).
    pub const StaleDbVersion: ErrorCode = ErrorCode(249);
    /// StaleChunkHistory (250).
    pub const StaleChunkHistory: ErrorCode = ErrorCode(250);
    /// NoSuchTransaction (251).
    pub const NoSuchTransaction: ErrorCode = ErrorCode(251);
    /// ReentrancyNotAllowed (252).
    pub const ReentrancyNotAllowed: ErrorCode = ErrorCode(252);
    /// TransactionCommitted (256).
    pub const TransactionCommitted: ErrorCode = ErrorCode(256);
    /// TransactionTooLarge (257).
    pub const TransactionTooLarge: ErrorCode = ErrorCode(257);
    /// UnknownFeatureCompatibilityVersion (258).
    pub const UnknownFeatureCompatibilityVersion: ErrorCode = ErrorCode(258);
    /// KeyedExecutorRetry (259).
    pub const KeyedExecutorRetry: ErrorCode = ErrorCode(259);
    /// InvalidResumeToken (260).
    pub const InvalidResumeToken: ErrorCode = ErrorCode(260);
    /// TooManyLogicalSessions (261).
    pub const TooManyLogicalSessions: ErrorCode = ErrorCode(261);
    /// ExceededTimeLimit (262).
    pub const ExceededTimeLimit: ErrorCode = ErrorCode(262);
    /// OperationNotSupportedInTransaction (263).
    pub const OperationNotSupportedInTransaction: ErrorCode = ErrorCode(263);
    /// TooManyFilesOpen (264).
    pub const TooManyFilesOpen: ErrorCode = ErrorCode(264);
    /// OrphanedRangeCleanUpFailed (265).
    pub const OrphanedRangeCleanUpFailed: ErrorCode = ErrorCode(265);
    /// FailPointSetFailed (266).
    pub const FailPointSetFailed: ErrorCode = ErrorCode(266);
    /// PreparedTransactionInProgress (267).
    pub const PreparedTransactionInProgress: ErrorCode = ErrorCode(267);
    /// CannotBackup (268).
    pub const CannotBackup: ErrorCode = ErrorCode(268);
    /// DataModifiedByRepair (269).
    pub const DataModifiedByRepair: ErrorCode = ErrorCode(269);
    /// RepairedReplicaSetNode (270).
    pub const RepairedReplicaSetNode: ErrorCode = ErrorCode(270);
    /// JSInterpreterFailureWithStack (271).
    pub const JSInterpreterFailureWithStack: ErrorCode = ErrorCode(271);
    /// MigrationConflict (272).
    pub const MigrationConflict: ErrorCode = ErrorCode(272);
    /// ProducerConsumerQueueProducerQueueDepthExceeded (273).
    pub const ProducerConsumerQueueProducerQueueDepthExceeded: ErrorCode = ErrorCode(273);
    /// ProducerConsumerQueueConsumed (274).
    pub const ProducerConsumerQueueConsumed: ErrorCode = ErrorCode(274);
    /// ExchangePassthrough (275).
    pub const ExchangePassthrough: ErrorCode = ErrorCode(275);
    /// IndexBuildAborted (276).
    pub const IndexBuildAborted: ErrorCode = ErrorCode(276);
    /// AlarmAlreadyFulfilled (277).
    pub const AlarmAlreadyFulfilled: ErrorCode = ErrorCode(277);
    /// UnsatisfiableCommitQuorum (278).
    pub const UnsatisfiableCommitQuorum: ErrorCode = ErrorCode(278);
    /// ClientDisconnect (279).
    pub const ClientDisconnect: ErrorCode = ErrorCode(279);
    /// ChangeStreamFatalError (280).
    pub const ChangeStreamFatalError: ErrorCode = ErrorCode(280);
    /// TransactionCoordinatorSteppingDown (281).
    pub const TransactionCoordinatorSteppingDown: ErrorCode = ErrorCode(281);
    /// TransactionCoordinatorReachedAbortDecision (282).
    pub const TransactionCoordinatorReachedAbortDecision: ErrorCode = ErrorCode(282);
    /// WouldChangeOwningShard (283).
    pub const WouldChangeOwningShard: ErrorCode = ErrorCode(283);
    /// IndexBuildAlreadyInProgress (285).
    pub const IndexBuildAlreadyInProgress: ErrorCode = ErrorCode(285);
    /// ChangeStreamHistoryLost (286).
    pub const ChangeStreamHistoryLost: ErrorCode = ErrorCode(286);
    /// ChecksumMismatch (288).
    pub const ChecksumMismatch: ErrorCode = ErrorCode(288);
    /// TransactionExceededLifetimeLimitSeconds (290).
    pub const TransactionExceededLifetimeLimitSeconds: ErrorCode = ErrorCode(290);
    /// NoQueryExecutionPlans (291).
    pub const NoQueryExecutionPlans: ErrorCode = ErrorCode(291);
    /// QueryExceededMemoryLimitNoDiskUseAllowed (292).
    pub const QueryExceededMemoryLimitNoDiskUseAllowed: ErrorCode = ErrorCode(292);
    /// InvalidSeedList (293).
    pub const InvalidSeedList: ErrorCode = ErrorCode(293);
    /// InvalidTopologyType (294).
    pub const InvalidTopologyType: ErrorCode = ErrorCode(294);
    /// InvalidHeartBeatFrequency (295).
    pub const InvalidHeartBeatFrequency: ErrorCode = ErrorCode(295);
    /// TopologySetNameRequired (296).
    pub const TopologySetNameRequired: ErrorCode = ErrorCode(296);
    /// HierarchicalAcquisitionLevelViolation (297).
    pub const HierarchicalAcquisitionLevelViolation: ErrorCode = ErrorCode(297);
    /// InvalidServerType (298).
    pub const InvalidServerType: ErrorCode = ErrorCode(298);
    /// OCSPCertificateStatusRevoked (299).
    pub const OCSPCertificateStatusRevoked: ErrorCode = ErrorCode(299);
    /// RangeDeletionAbandonedBecauseCollectionWithUUIDDoesNotExist (300).
    pub const RangeDeletionAbandonedBecauseCollectionWithUUIDDoesNotExist: ErrorCode = ErrorCode(300);
    /// DataCorruptionDetected (301).
    pub const DataCorruptionDetected: ErrorCode = ErrorCode(301);
    /// OCSPCertificateStatusUnknown (302).
    pub const OCSPCertificateStatusUnknown: ErrorCode = ErrorCode(302);
    /// SplitHorizonChange (303).
    pub const SplitHorizonChange: ErrorCode = ErrorCode(303);
    /// RangeDeletionAbandonedBecauseTaskDocumentDoesNotExist (307).
    pub const RangeDeletionAbandonedBecauseTaskDocumentDoesNotExist: ErrorCode = ErrorCode(307);
    /// CurrentConfigNotCommittedYet (308).
    pub const CurrentConfigNotCommittedYet: ErrorCode = ErrorCode(308);
    /// ExhaustCommandFinished (309).
    pub const ExhaustCommandFinished: ErrorCode = ErrorCode(309);
    /// PeriodicJobIsStopped (310).
    pub const PeriodicJobIsStopped: ErrorCode = ErrorCode(310);
    /// ResumableRangeDeleterDisabled (313).
    pub const ResumableRangeDeleterDisabled: ErrorCode = ErrorCode(313);
    /// ObjectIsBusy (314).
    pub const ObjectIsBusy: ErrorCode = ErrorCode(314);
    /// MovePrimaryInProgress (319).
    pub const MovePrimaryInProgress: ErrorCode = ErrorCode(319);
    /// APIVersionError (322).
    pub const APIVersionError: ErrorCode = ErrorCode(322);
    /// APIStrictError (323).
    pub const APIStrictError: ErrorCode = ErrorCode(323);
    /// APIDeprecationError (324).
    pub const APIDeprecationError: ErrorCode = ErrorCode(324);
    /// OplogQueryMinTsMissing (326).
    pub const OplogQueryMinTsMissing: ErrorCode = ErrorCode(326);
    /// SkipCommandExecution (330).
    pub const SkipCommandExecution: ErrorCode = ErrorCode(330);
    /// FailedToRunWithReplyBuilder (331).
    pub const FailedToRunWithReplyBuilder: ErrorCode = ErrorCode(331);
    /// CannotDowngrade (332).
    pub const CannotDowngrade: ErrorCode = ErrorCode(332);
    /// MechanismUnavailable (334).
    pub const MechanismUnavailable: ErrorCode = ErrorCode(334);
    /// ReshardCollectionInProgress (338).
    pub const ReshardCollectionInProgress: ErrorCode = ErrorCode(338);
    /// NoSuchReshardCollection (339).
    pub const NoSuchReshardCollection: ErrorCode = ErrorCode(339);
    /// ReshardCollectionCommitted (340).
    pub const ReshardCollectionCommitted: ErrorCode = ErrorCode(340);
    /// ReshardCollectionAborted (341).
    pub const ReshardCollectionAborted: ErrorCode = ErrorCode(341);
    /// ReshardingCriticalSectionTimeout (342).
    pub const ReshardingCriticalSectionTimeout: ErrorCode = ErrorCode(342);
    /// AuditingNotEnabled (344).
    pub const AuditingNotEnabled: ErrorCode = ErrorCode(344);
    /// RuntimeAuditConfigurationNotEnabled (345).
    pub const RuntimeAuditConfigurationNotEnabled: ErrorCode = ErrorCode(345);
    /// ChangeStreamInvalidated (346).
    pub const ChangeStreamInvalidated: ErrorCode = ErrorCode(346);
    /// APIMismatchError (347).
    pub const APIMismatchError: ErrorCode = ErrorCode(347);
    /// ChangeStreamTopologyChange (348).
    pub const ChangeStreamTopologyChange: ErrorCode = ErrorCode(348);
    /// KeyPatternShorterThanBound (349).
    pub const KeyPatternShorterThanBound: ErrorCode = ErrorCode(349);
    /// ReshardCollectionTruncatedError (350).
    pub const ReshardCollectionTruncatedError: ErrorCode = ErrorCode(350);
    /// ChangeStreamStartAfterInvalidate (351).
    pub const ChangeStreamStartAfterInvalidate: ErrorCode = ErrorCode(351);
    /// UnsupportedOpQueryCommand (352).
    pub const UnsupportedOpQueryCommand: ErrorCode = ErrorCode(352);
    /// LoadBalancerSupportMismatch (354).
    pub const LoadBalancerSupportMismatch: ErrorCode = ErrorCode(354);
    /// InterruptedDueToStorageChange (355).
    pub const InterruptedDueToStorageChange: ErrorCode = ErrorCode(355);
    /// TxnRetryCounterTooOld (356).
    pub const TxnRetryCounterTooOld: ErrorCode = ErrorCode(356);
    /// InvalidBSONType (357).
    pub const InvalidBSONType: ErrorCode = ErrorCode(357);
    /// InternalTransactionNotSupported (358).
    pub const InternalTransactionNotSupported: ErrorCode = ErrorCode(358);
    /// CannotConvertIndexToUnique (359).
    pub const CannotConvertIndexToUnique: ErrorCode = ErrorCode(359);
    /// CollectionUUIDMismatch (361).
    pub const CollectionUUIDMismatch: ErrorCode = ErrorCode(361);
    /// FutureAlreadyRetrieved (362).
    pub const FutureAlreadyRetrieved: ErrorCode = ErrorCode(362);
    /// RetryableTransactionInProgress (363).
    pub const RetryableTransactionInProgress: ErrorCode = ErrorCode(363);
    /// TemporarilyUnavailable (365).
    pub const TemporarilyUnavailable: ErrorCode = ErrorCode(365);
    /// WouldChangeOwningShardDeletedNoDocument (366).
    pub const WouldChangeOwningShardDeletedNoDocument: ErrorCode = ErrorCode(366);
    /// FLETransactionAbort (369).
    pub const FLETransactionAbort: ErrorCode = ErrorCode(369);
    /// CannotDropShardKeyIndex (370).
    pub const CannotDropShardKeyIndex: ErrorCode = ErrorCode(370);
    /// UserWritesBlocked (371).
    pub const UserWritesBlocked: ErrorCode = ErrorCode(371);
    /// InternalTransactionsExhaustiveFindHasMore (373).
    pub const InternalTransactionsExhaustiveFindHasMore: ErrorCode = ErrorCode(373);
    /// ChangeStreamNotEnabled (376).
    pub const ChangeStreamNotEnabled: ErrorCode = ErrorCode(376);
    /// FLEMaxTagLimitExceeded (377).
    pub const FLEMaxTagLimitExceeded: ErrorCode = ErrorCode(377);
    /// NonConformantBSON (378).
    pub const NonConformantBSON: ErrorCode = ErrorCode(378);
    /// RequestAlreadyFulfilled (380).
    pub const RequestAlreadyFulfilled: ErrorCode = ErrorCode(380);
    /// CollectionIsEmptyLocally (383).
    pub const CollectionIsEmptyLocally: ErrorCode = ErrorCode(383);
    /// ConflictingServerlessOperation (385).
    pub const ConflictingServerlessOperation: ErrorCode = ErrorCode(385);
    /// DuplicateKeyId (386).
    pub const DuplicateKeyId: ErrorCode = ErrorCode(386);
    /// TransactionTooLargeForCache (388).
    pub const TransactionTooLargeForCache: ErrorCode = ErrorCode(388);
    /// LibmongocryptError (389).
    pub const LibmongocryptError: ErrorCode = ErrorCode(389);
    /// InvalidSignature (390).
    pub const InvalidSignature: ErrorCode = ErrorCode(390);
    /// ReauthenticationRequired (391).
    pub const ReauthenticationRequired: ErrorCode = ErrorCode(391);
    /// InvalidJWT (392).
    pub const InvalidJWT: ErrorCode = ErrorCode(392);
    /// InvalidTenantId (393).
    pub const InvalidTenantId: ErrorCode = ErrorCode(393);
    /// TruncatedSerialization (395).
    pub const TruncatedSerialization: ErrorCode = ErrorCode(395);
    /// IndexInformationTooLarge (396).
    pub const IndexInformationTooLarge: ErrorCode = ErrorCode(396);
    /// StreamTerminated (398).
    pub const StreamTerminated: ErrorCode = ErrorCode(398);
    /// CannotUpgrade (400).
    pub const CannotUpgrade: ErrorCode = ErrorCode(400);
    /// ResourceExhausted (402).
    pub const ResourceExhausted: ErrorCode = ErrorCode(402);
    /// LDAPRoleAcquisitionError (404).
    pub const LDAPRoleAcquisitionError: ErrorCode = ErrorCode(404);
    /// CannotCreateChunkDistribution (405).
    pub const CannotCreateChunkDistribution: ErrorCode = ErrorCode(405);
    /// CannotInsertTimeseriesBucketsWithMixedSchema (408).
    pub const CannotInsertTimeseriesBucketsWithMixedSchema: ErrorCode = ErrorCode(408);
    /// TimeseriesBucketCompressionFailed (409).
    pub const TimeseriesBucketCompressionFailed: ErrorCode = ErrorCode(409);
    /// QueryRejectedBySettings (411).
    pub const QueryRejectedBySettings: ErrorCode = ErrorCode(411);
    /// UpdatesStillPending (412).
    pub const UpdatesStillPending: ErrorCode = ErrorCode(412);
    /// IndexIsEmpty (426).
    pub const IndexIsEmpty: ErrorCode = ErrorCode(426);
    /// IndexKeyOrderViolation (430).
    pub const IndexKeyOrderViolation: ErrorCode = ErrorCode(430);
    /// OfflineValidationFailedToComplete (432).
    pub const OfflineValidationFailedToComplete: ErrorCode = ErrorCode(432);
    /// AdmissionQueueOverflow (433).
    pub const AdmissionQueueOverflow: ErrorCode = ErrorCode(433);
    /// NoDistinctScansForDistinctEligibleQuery (434).
    pub const NoDistinctScansForDistinctEligibleQuery: ErrorCode = ErrorCode(434);
    /// RetryMultiPlanning (442).
    pub const RetryMultiPlanning: ErrorCode = ErrorCode(442);
    /// RateLimitExceeded (449).
    pub const RateLimitExceeded: ErrorCode = ErrorCode(449);
    /// IngressRequestRateLimitExceeded (462).
    pub const IngressRequestRateLimitExceeded: ErrorCode = ErrorCode(462);
    /// SocketException (9001).
    pub const SocketException: ErrorCode = ErrorCode(9001);
    /// CannotGrowDocumentInCappedNamespace (10003).
    pub const CannotGrowDocumentInCappedNamespace: ErrorCode = ErrorCode(10003);
    /// LegacyNotPrimary (10058).
    pub const LegacyNotPrimary: ErrorCode = ErrorCode(10058);
    /// NotWritablePrimary (10107).
    pub const NotWritablePrimary: ErrorCode = ErrorCode(10107);
    /// BSONObjectTooLarge (10334).
    pub const BSONObjectTooLarge: ErrorCode = ErrorCode(10334);
    /// DuplicateKey (11000).
    pub const DuplicateKey: ErrorCode = ErrorCode(11000);
    /// InterruptedAtShutdown (11600).
    pub const InterruptedAtShutdown: ErrorCode = ErrorCode(11600);
    /// Interrupted (11601).
    pub const Interrupted: ErrorCode = ErrorCode(11601);
    /// InterruptedDueToReplStateChange (11602).
    pub const InterruptedDueToReplStateChange: ErrorCode = ErrorCode(11602);
    /// BackgroundOperationInProgressForDatabase (12586).
    pub const BackgroundOperationInProgressForDatabase: ErrorCode = ErrorCode(12586);
    /// BackgroundOperationInProgressForNamespace (12587).
    pub const BackgroundOperationInProgressForNamespace: ErrorCode = ErrorCode(12587);
    /// MergeStageNoMatchingDocument (13113).
    pub const MergeStageNoMatchingDocument: ErrorCode = ErrorCode(13113);
    /// DatabaseDifferCase (13297).
    pub const DatabaseDifferCase: ErrorCode = ErrorCode(13297);
    /// StaleConfig (13388).
    pub const StaleConfig: ErrorCode = ErrorCode(13388);
    /// NotPrimaryNoSecondaryOk (13435).
    pub const NotPrimaryNoSecondaryOk: ErrorCode = ErrorCode(13435);
    /// NotPrimaryOrSecondary (13436).
    pub const NotPrimaryOrSecondary: ErrorCode = ErrorCode(13436);
    /// OutOfDiskSpace (14031).
    pub const OutOfDiskSpace: ErrorCode = ErrorCode(14031);
    /// NamespaceCannotBeSharded (28769).
    pub const NamespaceCannotBeSharded: ErrorCode = ErrorCode(28769);
    /// SearchNotEnabled (31082).
    pub const SearchNotEnabled: ErrorCode = ErrorCode(31082);
    /// IDLDuplicateField (40413).
    pub const IDLDuplicateField: ErrorCode = ErrorCode(40413);
    /// IDLFailedToParse (40414).
    pub const IDLFailedToParse: ErrorCode = ErrorCode(40414);
    /// IDLUnknownField (40415).
    pub const IDLUnknownField: ErrorCode = ErrorCode(40415);
    /// ClientMarkedKilled (46841).
    pub const ClientMarkedKilled: ErrorCode = ErrorCode(46841);
    /// NotARetryableWriteCommand (50768).
    pub const NotARetryableWriteCommand: ErrorCode = ErrorCode(50768);
}
