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
    (26, "NamespaceNotFound", &[]),
    (27, "IndexNotFound", &[]),
    (28, "PathNotViable", &[]),
    (29, "NonExistentPath", &[]),
    (30, "InvalidPath", &[]),
    (31, "RoleNotFound", &[]),
    (32, "RolesNotRelated", &[]),
    (33, "PrivilegeNotFound", &[]),
    (34, "CannotBackfillArray", &[]),
    (36, "RemoteChangeDetected", &[]),
    (37, "FileRenameFailed", &[]),
    (38, "FileNotOpen", &[]),
    (39, "FileStreamFailed", &[]),
    (40, "ConflictingUpdateOperators", &[]),
    (41, "FileAlreadyOpen", &[]),
    (42, "LogWriteFailed", &[]),
    (43, "CursorNotFound", &[ErrorClass::CursorInvalidatedError]),
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
    (59, "CommandNotFound", &[]),
    (61, "ShardKeyNotFound", &[]),
    (62, "OplogOperationUnsupported", &[]),
    (64, "WriteConcernTimeout", &[ErrorClass::WriteConcernError]),
    (65, "MultipleErrorsOccurred", &[]),
    (66, "ImmutableField", &[]),
    (67, "CannotCreateIndex", &[]),
    (68, "IndexAlreadyExists", &[]),
    (70, "ShardNotFound", &[]),
    (71, "ReplicaSetNotFound", &[]),
    (72, "InvalidOptions", &[]),
    (73, "InvalidNamespace", &[]),
    (74, "NodeNotFound", &[]),
    (75, "WriteConcernLegacyOK", &[ErrorClass::WriteConcernError]),
    (76, "NoReplicationEnabled", &[]),
    (77, "OperationIncomplete", &[]),
    (79, "UnknownReplWriteConcern", &[ErrorClass::WriteConcernError]),
    (81, "NoMatchParseContext", &[]),
    (85, "IndexOptionsConflict", &[]),
    (86, "IndexKeySpecsConflict", &[]),
    (89, "NetworkTimeout", &[ErrorClass::NetworkError, ErrorClass::RetriableError]),
    (90, "CallbackCanceled", &[]),
    (91, "ShutdownInProgress", &[ErrorClass::ShutdownError, ErrorClass::RetriableError]),
    (93, "InvalidReplicaSetConfig", &[]),
    (94, "NotYetInitialized", &[]),
    (95, "NotSecondary", &[]),
    (96, "OperationFailed", &[ErrorClass::CursorInvalidatedError]),
    (97, "NoProjectionFound", &[]),
    (98, "DBPathInUse", &[]),
    (100, "UnsatisfiableWriteConcern", &[ErrorClass::WriteConcernError]),
    (101, "OutdatedClient", &[]),
    (103, "NewReplicaSetConfigurationIncompatible", &[]),
    (107, "LockFailed", &[]),
    (108, "InconsistentReplicaSetNames", &[]),
    (109, "ConfigurationInProgress", &[]),
    (110, "CannotInitializeNodeWithData", &[]),
    (111, "NotExactValueField", &[]),
    (112, "WriteConflict", &[]),
    (115, "CommandNotSupported", &[]),
    (116, "DocTooLargeForCapped", &[]),
    (117, "ConflictingOperationInProgress", &[]),
    (118, "NamespaceNotSharded", &[]),
    (121, "DocumentValidationFailure", &[]),
    (123, "NotAReplicaSet", &[]),
    (125, "CommandFailed", &[]),
    (128, "LockNotFound", &[]),
    (133, "FailedToSatisfyReadPreference", &[]),
    (134, "ReadConcernMajorityNotAvailableYet", &[ErrorClass::RetriableError]),
    (136, "CappedPositionLost", &[]),
    (139, "JSInterpreterFailure", &[]),
    (140, "InvalidSSLConfiguration", &[]),
    (141, "SSLHandshakeFailed", &[]),
    (143, "CursorInUse", &[]),
    (145, "PooledConnectionsDropped", &[]),
    (146, "ExceededMemoryLimit", &[]),
    (147, "ZLibError", &[]),
    (151, "OperationCannotBeBatched", &[]),
    (158, "MustUpgrade", &[]),
    (159, "DurationOverflow", &[]),
    (160, "MaxStalenessOutOfRange", &[]),
    (161, "IncompatibleCollationVersion", &[]),
    (162, "CollectionIsEmpty", &[]),
    (165, "ViewDepthLimitExceeded", &[]),
    (166, "CommandNotSupportedOnView", &[]),
    (167, "OptionNotSupportedOnView", &[]),
    (168, "InvalidPipelineOperator", &[]),
    (170, "TooManyMatchingDocuments", &[]),
    (171, "CannotIndexParallelArrays", &[]),
    (173, "TransportSessionNotFound", &[]),
    (175, "QueryPlanKilled", &[ErrorClass::CursorInvalidatedError]),
    (176, "FileOpenFailed", &[]),
    (181, "AmbiguousIndexKeyPattern", &[]),
    (182, "InvalidViewDefinition", &[]),
    (183, "ClientMetadataMissingField", &[]),
    (184, "ClientMetadataAppNameTooLarge", &[]),
    (185, "ClientMetadataDocumentTooLarge", &[]),
    (186, "ClientMetadataCannotBeMutated", &[]),
    (187, "LinearizableReadConcernError", &[]),
    (189, "PrimarySteppedDown", &[ErrorClass::NotPrimaryError, ErrorClass::RetriableError]),
    (192, "FailPointEnabled", &[]),
    (195, "ViewPipelineMaxSizeExceeded", &[]),
    (197, "InvalidIndexSpecificationOption", &[]),
    (201, "CannotBuildIndexKeys", &[]),
    (202, "NetworkInterfaceExceededTimeLimit", &[ErrorClass::ExceededTimeLimitError]),
    (206, "NoSuchSession", &[]),
    (207, "InvalidUUID", &[]),
    (211, "KeyNotFound", &[]),
    (213, "DuplicateSession", &[]),
    (215, "DatabaseDropPending", &[]),
    (217, "IncompleteTransactionHistory", &[]),
    (218, "UpdateOperationFailed", &[]),
    (221, "IndexModified", &[]),
    (222, "CloseChangeStream", &[]),
    (223, "IllegalOpMsgFlag", &[]),
    (224, "QueryFeatureNotAllowed", &[]),
    (225, "TransactionTooOld", &[]),
    (226, "AtomicityFailure", &[]),
    (229, "MustDowngrade", &[]),
    (232, "MaxSubPipelineDepthExceeded", &[]),
    (233, "TooManyDocumentSequences", &[]),
    (235, "InternalErrorNotSupported", &[]),
    (237, "CursorKilled", &[ErrorClass::Interruption, ErrorClass::CursorInvalidatedError]),
    (238, "NotImplemented", &[]),
    (239, "SnapshotTooOld", &[]),
    (241, "ConversionFailure", &[]),
    (242, "CannotCreateCollection", &[]),
    (246, "SnapshotUnavailable", &[]),
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
    (266, "NonConformantBSON", &[]),
    (267, "DatabaseMetadataRefreshCanceled", &[]),
    (275, "NoSuchReshardCollection", &[]),
    (276, "IndexBuildAborted", &[]),
    (277, "ReadThroughCacheLookupCanceled", &[]),
    (278, "AlarmAlreadyFulfilled", &[]),
    (279, "UnsatisfiableCommitQuorum", &[]),
    (280, "ChangeStreamFatalError", &[]),
    (281, "PreparedTransactionInProgress", &[]),
    (282, "CannotBackup", &[]),
    (283, "DataModifiedByRepair", &[]),
    (284, "RepairedReplicaSetNode", &[]),
    (285, "JSInterpreterFailureWithStack", &[]),
    (286, "ChangeStreamHistoryLost", &[]),
    (287, "TransactionCoordinatorDeadlineTaskCanceled", &[]),
    (288, "ChecksumMismatch", &[]),
    (290, "TransactionExceededLifetimeLimitSeconds", &[]),
    (291, "NoQueryExecutionPlans", &[]),
    (292, "QueryExceededMemoryLimitNoDiskUseAllowed", &[]),
    (293, "InvalidSeedList", &[]),
    (294, "InvalidTopologyType", &[]),
    (295, "InvalidHeartBeatFrequency", &[]),
    (296, "TopologySetNameRequired", &[]),
    (299, "OCSPCertificateStatusRevoked", &[]),
    (302, "RangeDeletionAbandonedBecauseCollectionWithUUIDDoesNotExist", &[]),
    (303, "DataCorruptionDetected", &[]),
    (304, "OCSPCertificateStatusUnknown", &[]),
    (307, "SplitHorizonChange", &[]),
    (313, "ClientDisconnect", &[ErrorClass::NetworkError, ErrorClass::Interruption]),
    (314, "ClientMarkedKilled", &[ErrorClass::Interruption]),
    (317, "NotAPrimaryOrSecondary", &[]),
    (318, "TransportSessionClosed", &[]),
    (322, "APIVersionError", &[]),
    (323, "APIStrictError", &[]),
    (324, "APIDeprecationError", &[]),
    (325, "TransactionAPIMustRetryTransaction", &[]),
    (327, "TransactionParticipantFailedUnyield", &[]),
    (331, "FeatureAlreadyExists", &[]),
    (334, "ServiceExecutorInShutdown", &[]),
    (335, "MechanismUnavailable", &[]),
    (336, "TenantMigrationForgotten", &[]),
    (337, "TimeseriesBucketCleared", &[]),
    (338, "AuthenticationAbandoned", &[]),
    (342, "ReshardCollectionAborted", &[]),
    (344, "NoSuchTenantMigration", &[]),
    (346, "InvalidatedRangeDeletionTask", &[]),
    (348, "LockTimeoutAggregated", &[]),
    (354, "ChangeStreamStartAfterInvalidate", &[]),
    (359, "IllegalChangeToExpectedShardVersion", &[]),
    (361, "CollectionUUIDMismatch", &[]),
    (365, "TenantMigrationConflict", &[]),
    (388, "UnableToCleanupFailedIndexBuild", &[]),
    (395, "ReplicaSetMonitorShutdown", &[]),
    (396, "ClusterTopologyChanged", &[]),
    (397, "InsufficientPrivileges", &[]),
    (409, "FLETransactionAbort", &[]),
    (413, "CannotDropShardKeyIndex", &[]),
    (414, "UserWritesBlocked", &[]),
    (423, "CloudRequestThrottled", &[]),
    (431, "InvalidBSONType", &[]),
    (441, "CannotCreateChunkDistribution", &[]),
    (443, "MovePrimaryInProgress", &[]),
    (448, "EncounteredFLEPayloadWhileRedacting", &[]),
    (453, "RetriableTransactionInProgress", &[]),
    (455, "InterruptedDueToTimeseriesUpgradeDowngrade", &[ErrorClass::Interruption]),
    (459, "InterruptedDueToReshardingCriticalSection", &[]),
    (462, "IngressRequestRateLimitExceeded", &[]),
    (9001, "SocketException", &[ErrorClass::NetworkError, ErrorClass::RetriableError]),
    (10003, "CannotGrowDocumentInCappedNamespace", &[]),
    (10107, "NotWritablePrimary", &[ErrorClass::NotPrimaryError, ErrorClass::RetriableError]),
    (10334, "BSONObjectTooLarge", &[ErrorClass::ValidationError]),
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
    (17280, "KeyTooLong", &[]),
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
    /// UnknownReplWriteConcern (79).
    pub const UnknownReplWriteConcern: ErrorCode = ErrorCode(79);
    /// NoMatchParseContext (81).
    pub const NoMatchParseContext: ErrorCode = ErrorCode(81);
    /// IndexOptionsConflict (85).
    pub const IndexOptionsConflict: ErrorCode = ErrorCode(85);
    /// IndexKeySpecsConflict (86).
    pub const IndexKeySpecsConflict: ErrorCode = ErrorCode(86);
    /// NetworkTimeout (89).
    pub const NetworkTimeout: ErrorCode = ErrorCode(89);
    /// CallbackCanceled (90).
    pub const CallbackCanceled: ErrorCode = ErrorCode(90);
    /// ShutdownInProgress (91).
    pub const ShutdownInProgress: ErrorCode = ErrorCode(91);
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
    /// NewReplicaSetConfigurationIncompatible (103).
    pub const NewReplicaSetConfigurationIncompatible: ErrorCode = ErrorCode(103);
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
    /// CommandNotSupported (115).
    pub const CommandNotSupported: ErrorCode = ErrorCode(115);
    /// DocTooLargeForCapped (116).
    pub const DocTooLargeForCapped: ErrorCode = ErrorCode(116);
    /// ConflictingOperationInProgress (117).
    pub const ConflictingOperationInProgress: ErrorCode = ErrorCode(117);
    /// NamespaceNotSharded (118).
    pub const NamespaceNotSharded: ErrorCode = ErrorCode(118);
    /// DocumentValidationFailure (121).
    pub const DocumentValidationFailure: ErrorCode = ErrorCode(121);
    /// NotAReplicaSet (123).
    pub const NotAReplicaSet: ErrorCode = ErrorCode(123);
    /// CommandFailed (125).
    pub const CommandFailed: ErrorCode = ErrorCode(125);
    /// LockNotFound (128).
    pub const LockNotFound: ErrorCode = ErrorCode(128);
    /// FailedToSatisfyReadPreference (133).
    pub const FailedToSatisfyReadPreference: ErrorCode = ErrorCode(133);
    /// ReadConcernMajorityNotAvailableYet (134).
    pub const ReadConcernMajorityNotAvailableYet: ErrorCode = ErrorCode(134);
    /// CappedPositionLost (136).
    pub const CappedPositionLost: ErrorCode = ErrorCode(136);
    /// JSInterpreterFailure (139).
    pub const JSInterpreterFailure: ErrorCode = ErrorCode(139);
    /// InvalidSSLConfiguration (140).
    pub const InvalidSSLConfiguration: ErrorCode = ErrorCode(140);
    /// SSLHandshakeFailed (141).
    pub const SSLHandshakeFailed: ErrorCode = ErrorCode(141);
    /// CursorInUse (143).
    pub const CursorInUse: ErrorCode = ErrorCode(143);
    /// PooledConnectionsDropped (145).
    pub const PooledConnectionsDropped: ErrorCode = ErrorCode(145);
    /// ExceededMemoryLimit (146).
    pub const ExceededMemoryLimit: ErrorCode = ErrorCode(146);
    /// ZLibError (147).
    pub const ZLibError: ErrorCode = ErrorCode(147);
    /// OperationCannotBeBatched (151).
    pub const OperationCannotBeBatched: ErrorCode = ErrorCode(151);
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
    /// ViewDepthLimitExceeded (165).
    pub const ViewDepthLimitExceeded: ErrorCode = ErrorCode(165);
    /// CommandNotSupportedOnView (166).
    pub const CommandNotSupportedOnView: ErrorCode = ErrorCode(166);
    /// OptionNotSupportedOnView (167).
    pub const OptionNotSupportedOnView: ErrorCode = ErrorCode(167);
    /// InvalidPipelineOperator (168).
    pub const InvalidPipelineOperator: ErrorCode = ErrorCode(168);
    /// TooManyMatchingDocuments (170).
    pub const TooManyMatchingDocuments: ErrorCode = ErrorCode(170);
    /// CannotIndexParallelArrays (171).
    pub const CannotIndexParallelArrays: ErrorCode = ErrorCode(171);
    /// TransportSessionNotFound (173).
    pub const TransportSessionNotFound: ErrorCode = ErrorCode(173);
    /// QueryPlanKilled (175).
    pub const QueryPlanKilled: ErrorCode = ErrorCode(175);
    /// FileOpenFailed (176).
    pub const FileOpenFailed: ErrorCode = ErrorCode(176);
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
    /// PrimarySteppedDown (189).
    pub const PrimarySteppedDown: ErrorCode = ErrorCode(189);
    /// FailPointEnabled (192).
    pub const FailPointEnabled: ErrorCode = ErrorCode(192);
    /// ViewPipelineMaxSizeExceeded (195).
    pub const ViewPipelineMaxSizeExceeded: ErrorCode = ErrorCode(195);
    /// InvalidIndexSpecificationOption (197).
    pub const InvalidIndexSpecificationOption: ErrorCode = ErrorCode(197);
    /// CannotBuildIndexKeys (201).
    pub const CannotBuildIndexKeys: ErrorCode = ErrorCode(201);
    /// NetworkInterfaceExceededTimeLimit (202).
    pub const NetworkInterfaceExceededTimeLimit: ErrorCode = ErrorCode(202);
    /// NoSuchSession (206).
    pub const NoSuchSession: ErrorCode = ErrorCode(206);
    /// InvalidUUID (207).
    pub const InvalidUUID: ErrorCode = ErrorCode(207);
    /// KeyNotFound (211).
    pub const KeyNotFound: ErrorCode = ErrorCode(211);
    /// DuplicateSession (213).
    pub const DuplicateSession: ErrorCode = ErrorCode(213);
    /// DatabaseDropPending (215).
    pub const DatabaseDropPending: ErrorCode = ErrorCode(215);
    /// IncompleteTransactionHistory (217).
    pub const IncompleteTransactionHistory: ErrorCode = ErrorCode(217);
    /// UpdateOperationFailed (218).
    pub const UpdateOperationFailed: ErrorCode = ErrorCode(218);
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
    /// MustDowngrade (229).
    pub const MustDowngrade: ErrorCode = ErrorCode(229);
    /// MaxSubPipelineDepthExceeded (232).
    pub const MaxSubPipelineDepthExceeded: ErrorCode = ErrorCode(232);
    /// TooManyDocumentSequences (233).
    pub const TooManyDocumentSequences: ErrorCode = ErrorCode(233);
    /// InternalErrorNotSupported (235).
    pub const InternalErrorNotSupported: ErrorCode = ErrorCode(235);
    /// CursorKilled (237).
    pub const CursorKilled: ErrorCode = ErrorCode(237);
    /// NotImplemented (238).
    pub const NotImplemented: ErrorCode = ErrorCode(238);
    /// SnapshotTooOld (239).
    pub const SnapshotTooOld: ErrorCode = ErrorCode(239);
    /// ConversionFailure (241).
    pub const ConversionFailure: ErrorCode = ErrorCode(241);
    /// CannotCreateCollection (242).
    pub const CannotCreateCollection: ErrorCode = ErrorCode(242);
    /// SnapshotUnavailable (246).
    pub const SnapshotUnavailable: ErrorCode = ErrorCode(246);
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
    /// NonConformantBSON (266).
    pub const NonConformantBSON: ErrorCode = ErrorCode(266);
    /// DatabaseMetadataRefreshCanceled (267).
    pub const DatabaseMetadataRefreshCanceled: ErrorCode = ErrorCode(267);
    /// NoSuchReshardCollection (275).
    pub const NoSuchReshardCollection: ErrorCode = ErrorCode(275);
    /// IndexBuildAborted (276).
    pub const IndexBuildAborted: ErrorCode = ErrorCode(276);
    /// ReadThroughCacheLookupCanceled (277).
    pub const ReadThroughCacheLookupCanceled: ErrorCode = ErrorCode(277);
    /// AlarmAlreadyFulfilled (278).
    pub const AlarmAlreadyFulfilled: ErrorCode = ErrorCode(278);
    /// UnsatisfiableCommitQuorum (279).
    pub const UnsatisfiableCommitQuorum: ErrorCode = ErrorCode(279);
    /// ChangeStreamFatalError (280).
    pub const ChangeStreamFatalError: ErrorCode = ErrorCode(280);
    /// PreparedTransactionInProgress (281).
    pub const PreparedTransactionInProgress: ErrorCode = ErrorCode(281);
    /// CannotBackup (282).
    pub const CannotBackup: ErrorCode = ErrorCode(282);
    /// DataModifiedByRepair (283).
    pub const DataModifiedByRepair: ErrorCode = ErrorCode(283);
    /// RepairedReplicaSetNode (284).
    pub const RepairedReplicaSetNode: ErrorCode = ErrorCode(284);
    /// JSInterpreterFailureWithStack (285).
    pub const JSInterpreterFailureWithStack: ErrorCode = ErrorCode(285);
    /// ChangeStreamHistoryLost (286).
    pub const ChangeStreamHistoryLost: ErrorCode = ErrorCode(286);
    /// TransactionCoordinatorDeadlineTaskCanceled (287).
    pub const TransactionCoordinatorDeadlineTaskCanceled: ErrorCode = ErrorCode(287);
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
    /// OCSPCertificateStatusRevoked (299).
    pub const OCSPCertificateStatusRevoked: ErrorCode = ErrorCode(299);
    /// RangeDeletionAbandonedBecauseCollectionWithUUIDDoesNotExist (302).
    pub const RangeDeletionAbandonedBecauseCollectionWithUUIDDoesNotExist: ErrorCode = ErrorCode(302);
    /// DataCorruptionDetected (303).
    pub const DataCorruptionDetected: ErrorCode = ErrorCode(303);
    /// OCSPCertificateStatusUnknown (304).
    pub const OCSPCertificateStatusUnknown: ErrorCode = ErrorCode(304);
    /// SplitHorizonChange (307).
    pub const SplitHorizonChange: ErrorCode = ErrorCode(307);
    /// ClientDisconnect (313).
    pub const ClientDisconnect: ErrorCode = ErrorCode(313);
    /// ClientMarkedKilled (314).
    pub const ClientMarkedKilled: ErrorCode = ErrorCode(314);
    /// NotAPrimaryOrSecondary (317).
    pub const NotAPrimaryOrSecondary: ErrorCode = ErrorCode(317);
    /// TransportSessionClosed (318).
    pub const TransportSessionClosed: ErrorCode = ErrorCode(318);
    /// APIVersionError (322).
    pub const APIVersionError: ErrorCode = ErrorCode(322);
    /// APIStrictError (323).
    pub const APIStrictError: ErrorCode = ErrorCode(323);
    /// APIDeprecationError (324).
    pub const APIDeprecationError: ErrorCode = ErrorCode(324);
    /// TransactionAPIMustRetryTransaction (325).
    pub const TransactionAPIMustRetryTransaction: ErrorCode = ErrorCode(325);
    /// TransactionParticipantFailedUnyield (327).
    pub const TransactionParticipantFailedUnyield: ErrorCode = ErrorCode(327);
    /// FeatureAlreadyExists (331).
    pub const FeatureAlreadyExists: ErrorCode = ErrorCode(331);
    /// ServiceExecutorInShutdown (334).
    pub const ServiceExecutorInShutdown: ErrorCode = ErrorCode(334);
    /// MechanismUnavailable (335).
    pub const MechanismUnavailable: ErrorCode = ErrorCode(335);
    /// TenantMigrationForgotten (336).
    pub const TenantMigrationForgotten: ErrorCode = ErrorCode(336);
    /// TimeseriesBucketCleared (337).
    pub const TimeseriesBucketCleared: ErrorCode = ErrorCode(337);
    /// AuthenticationAbandoned (338).
    pub const AuthenticationAbandoned: ErrorCode = ErrorCode(338);
    /// ReshardCollectionAborted (342).
    pub const ReshardCollectionAborted: ErrorCode = ErrorCode(342);
    /// NoSuchTenantMigration (344).
    pub const NoSuchTenantMigration: ErrorCode = ErrorCode(344);
    /// InvalidatedRangeDeletionTask (346).
    pub const InvalidatedRangeDeletionTask: ErrorCode = ErrorCode(346);
    /// LockTimeoutAggregated (348).
    pub const LockTimeoutAggregated: ErrorCode = ErrorCode(348);
    /// ChangeStreamStartAfterInvalidate (354).
    pub const ChangeStreamStartAfterInvalidate: ErrorCode = ErrorCode(354);
    /// IllegalChangeToExpectedShardVersion (359).
    pub const IllegalChangeToExpectedShardVersion: ErrorCode = ErrorCode(359);
    /// CollectionUUIDMismatch (361).
    pub const CollectionUUIDMismatch: ErrorCode = ErrorCode(361);
    /// TenantMigrationConflict (365).
    pub const TenantMigrationConflict: ErrorCode = ErrorCode(365);
    /// UnableToCleanupFailedIndexBuild (388).
    pub const UnableToCleanupFailedIndexBuild: ErrorCode = ErrorCode(388);
    /// ReplicaSetMonitorShutdown (395).
    pub const ReplicaSetMonitorShutdown: ErrorCode = ErrorCode(395);
    /// ClusterTopologyChanged (396).
    pub const ClusterTopologyChanged: ErrorCode = ErrorCode(396);
    /// InsufficientPrivileges (397).
    pub const InsufficientPrivileges: ErrorCode = ErrorCode(397);
    /// FLETransactionAbort (409).
    pub const FLETransactionAbort: ErrorCode = ErrorCode(409);
    /// CannotDropShardKeyIndex (413).
    pub const CannotDropShardKeyIndex: ErrorCode = ErrorCode(413);
    /// UserWritesBlocked (414).
    pub const UserWritesBlocked: ErrorCode = ErrorCode(414);
    /// CloudRequestThrottled (423).
    pub const CloudRequestThrottled: ErrorCode = ErrorCode(423);
    /// InvalidBSONType (431).
    pub const InvalidBSONType: ErrorCode = ErrorCode(431);
    /// CannotCreateChunkDistribution (441).
    pub const CannotCreateChunkDistribution: ErrorCode = ErrorCode(441);
    /// MovePrimaryInProgress (443).
    pub const MovePrimaryInProgress: ErrorCode = ErrorCode(443);
    /// EncounteredFLEPayloadWhileRedacting (448).
    pub const EncounteredFLEPayloadWhileRedacting: ErrorCode = ErrorCode(448);
    /// RetriableTransactionInProgress (453).
    pub const RetriableTransactionInProgress: ErrorCode = ErrorCode(453);
    /// InterruptedDueToTimeseriesUpgradeDowngrade (455).
    pub const InterruptedDueToTimeseriesUpgradeDowngrade: ErrorCode = ErrorCode(455);
    /// InterruptedDueToReshardingCriticalSection (459).
    pub const InterruptedDueToReshardingCriticalSection: ErrorCode = ErrorCode(459);
    /// IngressRequestRateLimitExceeded (462).
    pub const IngressRequestRateLimitExceeded: ErrorCode = ErrorCode(462);
    /// SocketException (9001).
    pub const SocketException: ErrorCode = ErrorCode(9001);
    /// CannotGrowDocumentInCappedNamespace (10003).
    pub const CannotGrowDocumentInCappedNamespace: ErrorCode = ErrorCode(10003);
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
    /// KeyTooLong (17280).
    pub const KeyTooLong: ErrorCode = ErrorCode(17280);
}
